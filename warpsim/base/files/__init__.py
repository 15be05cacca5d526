"""Reading and writing files safely, and the version of the code."""
