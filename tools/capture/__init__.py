"""Golden vectors from a real GPU: builds kernels, runs them through the CUDA driver, keeps what comes back.

kernels      an instruction and its immediates -> the PTX of a kernel, and where a case lies in memory
driver       the CUDA driver API by ctypes (stands alone: it needs nothing else)
jobs         a kernel and the bytes of its cases -> the bytes that come back (stands alone, with NumPy)
simulated    a device for computers without a GPU: the same calls, the text launched by warpsim
candidates   other ways in which a chip might compute, for experiments and for the simulated device
operands     matrices -> vector sets of any form; random sets
capturing    vector set -> jobs -> vector set with the chip's D
experiments  questions that nobody has answered, with inputs that decide them
sources      what there is to capture: files, traces, experiments, every form of a chip
campaign     doing all of it in a limited time, and going on where it stopped
bundle       the same on a computer that has no warpsim: a folder to carry there and to bring back
assembling   what ptxas says about the kernels
command      the command line
"""
