"""The RTL kit: a SystemVerilog fused dot-product-add unit, proved against warpsim in a logic simulator."""
