"""Records of a launch: matrix instructions, timelines, register values at a line."""
