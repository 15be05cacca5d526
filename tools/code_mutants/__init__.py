"""One-line changes to warpsim's own code, and whether its tests notice them."""
