"""Matrix descriptors as fields: what each may be instead, and tiles that are read so."""
