"""How many lanes execute together (PTX ISA 9.1, sections 2.2 "thread hierarchy" and 9.7.15.1 "warpgroup")."""

WARP = 32
WARPGROUP = 128
