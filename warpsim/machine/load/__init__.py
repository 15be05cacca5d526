"""Loading of modules: PTX text becomes records with numbered registers."""
