"""The arithmetic of an instruction a second time, step by step, with the limits of its formats and rule."""
