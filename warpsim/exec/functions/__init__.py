"""The functions of CUDA, a row each, by what they are about."""

from . import (  # noqa: F401 (they fill the table of rows)
    capture_calls,
    conditional_nodes,
    copy_calls,
    device_calls,
    driver_contexts,
    driver_modules,
    error_calls,
    graph_calls,
    graph_nodes,
    hints,
    launch_calls,
    links,
    memory_calls,
    pool_calls,
    refused_calls,
    registration,
    stream_calls,
    tensor_map_calls,
    user_objects,
    virtual_memory,
)
