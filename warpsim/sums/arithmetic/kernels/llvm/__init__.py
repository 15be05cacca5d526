"""The sum of a row over vectors of columns, written as LLVM code: called by ``panels``, as one intrinsic."""
