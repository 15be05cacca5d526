"""State of a launch: lanes, memories and the windows through which addresses reach them."""
