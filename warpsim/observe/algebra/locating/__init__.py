"""From wrong keys of outputs to the statement, the operands and the proof."""
