"""State of a launch: lanes, frames, memories and the device."""
