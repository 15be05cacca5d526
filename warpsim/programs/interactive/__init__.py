"""A warp or a warpgroup that Python holds: names, statements taken one by one, and their ordering rules."""
