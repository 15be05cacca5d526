"""Golden models: rules printed as C, to link without Python."""
