"""Matrix descriptors of wgmma and the tiles in shared memory that they address."""
