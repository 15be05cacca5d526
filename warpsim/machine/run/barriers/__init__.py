"""Where lanes wait for each other: barriers of CTAs and clusters, mbarriers, and the reasons to wait."""
