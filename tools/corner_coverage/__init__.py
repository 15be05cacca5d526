"""Full coverage of corner vectors for one form of each type on each modelled target."""
