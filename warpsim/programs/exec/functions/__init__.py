"""The functions of CUDA, a row each, by what they are about."""

from . import (  # noqa: F401 (they fill the table of rows)
    device_calls,
    driver_contexts,
    driver_modules,
    error_calls,
    hints,
    launch_calls,
    links,
    refused_calls,
    registration,
    stream_calls,
    tensor_map_calls,
)
from .graphs import (  # noqa: F401
    capture_calls,
    conditional_nodes,
    graph_calls,
    graph_nodes,
    node_reading,
    user_objects,
)
from .memory import (  # noqa: F401
    copy_calls,
    memory_calls,
    pool_calls,
    virtual_memory,
)
