"""Where operands lie: in registers, behind descriptors, in tensor memory; and the place of one element."""
