"""The operations for whatever speaks DLPack (numpy, JAX, CuPy, Paddle, PyTorch, ...), through tvm-ffi.

They write into tensors that the caller has made, and on a GPU run on the stream that is current in the
framework which the tensors are from; one that tells tvm-ffi of none has the default stream.

>>> import numpy as np
>>> import tokenyard.dlpack
>>> topk_ids = np.array([[2, 0], [2, 1], [0, 2], [2, 0]], np.int32)
>>> slots = tokenyard.dlpack.align_capacity(num_pairs=8, experts=3, block_size=4)
>>> sorted_pair_ids, block_expert = np.empty(slots, np.int32), np.empty(slots // 4, np.int32)
>>> num_padded = np.empty(1, np.int32)
>>> tokenyard.dlpack.align(topk_ids, 3, 4, sorted_pair_ids, block_expert, num_padded)
>>> sorted_pair_ids[: num_padded[0]].reshape(-1, 4)
array([[1, 4, 7, 8],
       [3, 8, 8, 8],
       [0, 2, 5, 6]], dtype=int32)
"""

from tokenyard.library import FOLDER, align_capacity

try:
    import tvm_ffi
except ImportError as error:
    raise ImportError("tokenyard.dlpack needs tvm-ffi: pip install apache-tvm-ffi") from error

__all__ = ["align", "align_capacity", "gate"]

_functions = tvm_ffi.load_module(str(FOLDER / "libtokenyard_tvm_ffi.so"))


def align(
    topk_ids,
    num_experts,
    block_size,
    sorted_pair_ids,
    block_expert,
    num_padded,
    *,
    expert_map=None,
    num_local_experts=None,
    counts=None,
    offsets=None,
    inverse=None,
    block_rows=None,
    num_dropped=None,
):
    """As tokenyard.align, into int32 tensors; those after the first three may be left out.

    sorted_pair_ids has align_capacity() elements or more, block_expert and block_rows have one for each
    block_size of them, begun or not. Raises ValueError where an argument is not as it should be. On a GPU,
    larger batches need scratch memory: of the framework that the tensors are from, if it has given tvm-ffi an
    allocator, as PyTorch does.
    """
    _functions.align(
        topk_ids,
        num_experts,
        block_size,
        expert_map,
        num_local_experts,
        sorted_pair_ids,
        block_expert,
        num_padded,
        counts,
        offsets,
        inverse,
        block_rows,
        num_dropped,
    )


def gate(
    logits,
    top_k,
    ids,
    weights,
    *,
    bias=None,
    score="softmax",
    weight_mode="raw",
    num_groups=0,
    kept_groups=0,
    group_score="max",
    epsilon=0.0,
    scale=1.0,
    num_shared_experts=0,
    shared_mode="fixed",
    shared_weight=1.0,
    replicas=None,
    num_replicas=None,
    num_physical_experts=0,
    num_real_tokens=None,
    counts=None,
    physical_counts=None,
):
    """As tokenyard.gate, into ids [num_tokens, top_k + num_shared_experts] int32 or int64 and weights
    float32; counts and physical_counts are int32 tensors or None. Raises ValueError where an argument is not
    as it should be.
    """
    _functions.gate(
        logits,
        top_k,
        bias,
        score,
        weight_mode,
        num_groups,
        kept_groups,
        group_score,
        epsilon,
        scale,
        num_shared_experts,
        shared_mode,
        shared_weight,
        replicas,
        num_replicas,
        num_physical_experts,
        num_real_tokens,
        ids,
        weights,
        counts,
        physical_counts,
    )
