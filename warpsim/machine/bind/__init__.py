"""Names, types, constants and sizes that the binding of statements uses."""
