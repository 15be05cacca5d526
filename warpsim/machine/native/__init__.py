"""Machine code of statements: their rows are traced, traces become LLVM's, and what is made is kept."""
