"""Who watches a launch: checks of memory and order, recorders. An observer has methods named after events.

    load (wave, path, lanes, memory, offsets, size)    bytes that lanes read, ``size`` each
    store (wave, path, lanes, memory, offsets, size, words)    bytes that lanes are about to write
    copied (wave, path, lanes, memory, offsets, size)         bytes that an asynchronous copy brings
    barrier (wave, number, ctas, path)                        a barrier of some CTAs is complete
    uninitialised (wave, path, register, mask)                lanes read a register never written
    unspecified (wave, path, lanes, what)                     lanes get a result that PTX leaves open
    matrix (wave, path, record, instruction, inputs, d, warps)  a matrix instruction is done
    wgmma (wave, path, multiplication, share)                 some warpgroups are about to issue one
    wgmma_order (wave, path, groups, verb, most)              they fence, commit or wait
    differing (wave, path, group, role, values)               an operand that must be the same in a warpgroup
    touched (wave, path, lanes, use)                          registers of a wgmma (register_uses.py)
    arriving (wave, path, lanes, number, threads, waits)      lanes come to a barrier of their CTAs
    meeting (wave, number, arrived, waited)                    masks of lanes at a barrier that is complete
    initialised, updated, acquired (wave, path, lanes, offsets[, ends])   mbarriers begin, are told, are seen
    invalidated (wave, path, lanes, offsets)                  mbarriers end
    bytes_came (wave, pending, offset, over)                   an operation tells its mbarrier
    arrived, met (wave, path, lanes)                          lanes at the barrier of their cluster
    cluster_barrier (wave, clusters, state)                    it is complete in some (cluster_barrier.py)
    setmaxnreg[_ignored, _apart] (wave, path, ...)            warps change their registers
    issued, fetched, completed, drained, unfinished            operations in flight (asynchrony.py)
    exit (wave, path, lanes)                                  lanes are done
    instrument (code) -> code                                  before a wave runs: records that do more

Which of them an observer has is its business; where there is none, nothing is told. One that is not
``active`` once it has seen the code is not asked again.
"""
