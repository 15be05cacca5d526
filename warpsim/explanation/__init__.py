"""Why an element of D has the bits that it has."""
