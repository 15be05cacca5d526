"""The ordering rules of wgmma: of its registers, its wgmma-groups, and the tiles that it reads."""
