"""What a launch did, over its schedule: lines of warps, panels, text and SVG."""
