"""The engine of the debugger: a launch that goes forwards and backwards in time."""
