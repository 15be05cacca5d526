"""Reading and writing files safely, texts of registers, and which version of the code this is."""
