"""Mistakes in register dumps and in loops along k, written as data before the code that finds them."""
