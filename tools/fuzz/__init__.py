"""Any bytes give a result or an error: what is tried, how it is changed, and who judges."""
