"""Checks of a launch: observers that find races, wrong orders and values that PTX leaves undefined.

An observer derives from ``Observer`` (machine/run/events.py) and overrides the events that it wants. This one
counts the bytes that a launch stores; pass it as ``observers=[StoredBytes()]``:

    from warpsim.machine.run.events import Observer

    class StoredBytes(Observer):
        def __init__(self):
            self.bytes = 0

        def store(self, wave, access):
            self.bytes += access.size * access.offsets.size

The events, and what each method takes after the wave. An access is a MemoryAccess
(machine/state/memory_access.py), ``pending`` a Pending (machine/run/asynchronous.py).

    load, store, atomic (access)               lanes read memory, are about to write or to change it
    copying, landed (access)                   lanes issue cp.async; its bytes have been written
    passed (lanes, source, target, size)       a call has copied a variable of these lanes in local memory
    mbarrier (access)                          lanes read or change mbarrier objects
    ordered (lanes)                            lanes acquire what others have released
    fence (path, lanes, words)                 lanes execute a fence with these modifiers
    uninitialised (path, register, mask)       lanes read a register that they have never written
    unspecified (path, lanes, what)            lanes get a result that PTX leaves undefined
    unusual (path, lane, what)                 a lane does what PTX allows and few kernels mean
    setmaxnreg (path, warp, moves)             a warp sets its number of registers
    setmaxnreg_apart (path, warp, other, before)   two warps of a warpgroup do so at different statements
    setmaxnreg_ignored (path, lanes)           a setmaxnreg has no effect
    arriving (arrival)                         lanes come to a barrier of their CTAs: a BarrierArrival
    meeting (number, arrived, waited)          a barrier is complete: masks of its lanes
    barrier (number, ctas, path)               the same, by CTA; number -1 is the barrier of a cluster
    arrived, cluster_met (path, lanes)         lanes arrive at the barrier of a cluster; continue behind it
    cluster_barrier (clusters)                 the barriers of these clusters are complete
    met (lanes, members, orders)               lanes of warps meet; orders: memory, too, as bar.warp.sync does
    exit (path, lanes)                         lanes have exited
    initialised, invalidated (path, lanes, offsets)    mbarriers begin and end
    updated (path, lanes, offsets, ends)       lanes arrive at mbarriers, or expect bytes
    acquired (path, lanes, offsets)            lanes have seen the end of a phase of mbarriers
    bytes_came (pending, offset, over)         bytes of an operation complete at an mbarrier
    issued (path, pending)                     an asynchronous operation is issued
    fetched, completed (pending)               it has read its source; it has written its destination
    drained (wait)                             lanes have waited for groups of operations: a GroupWait
    unfinished (pendings)                      all lanes have exited before these operations completed
    tensor_access (access)                     a statement is about to touch tensor memory: a TensorAccess
    tensor_columns (change)                    columns of it are allocated or about to be freed: TensorColumns
    map_used (path, lanes, address)              a lane uses a tensor map in global memory
    map_changed (path, lanes, address, released)     a lane changes a tensor map
    matrix (execution)                         a matrix instruction is done: a MatrixExecution
    wgmma (path, statement, share)                   warpgroups are about to issue a wgmma
    wgmma_order (path, groups, verb, most)     warpgroups execute wgmma.fence, commit_group or wait_group
    differing (path, group, role, values)      an operand differs within a warpgroup
    touched (path, lanes, use)                 lanes are about to use registers of a wgmma: a RegisterUse

``instrument(code)`` is called before a wave runs and returns the records that it executes; an observer whose
``active`` is False after that receives no events. A method that takes a wave and is none of these events, or
takes other parameters, is an error that names the nearest event.
"""
