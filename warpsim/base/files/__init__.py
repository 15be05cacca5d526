"""Reading and writing files safely, texts of registers, and the version of the code."""
