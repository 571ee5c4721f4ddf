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

__all__ = ["align", "align_capacity", "balance", "gate", "gate_backward", "route", "router_loss"]

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
    first_id=0,
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
        first_id,
        sorted_pair_ids,
        block_expert,
        num_padded,
        counts,
        offsets,
        inverse,
        block_rows,
        num_dropped,
    )


# gate's options in the order in which functions take them, and their defaults.
_GATE_OPTIONS = {
    "bias": None,
    "score": "softmax",
    "weight_mode": "raw",
    "num_groups": 0,
    "kept_groups": 0,
    "group_score": "max",
    "epsilon": 0.0,
    "scale": 1.0,
    "num_shared_experts": 0,
    "shared_mode": "fixed",
    "shared_weight": 1.0,
    "replicas": None,
    "num_replicas": None,
    "num_physical_experts": 0,
    "num_real_tokens": None,
}


def _in_order(options):
    for name in options:
        if name not in _GATE_OPTIONS:
            raise TypeError(f"gate: no option is called {name}, expected one of {', '.join(_GATE_OPTIONS)}")
    return {**_GATE_OPTIONS, **options}.values()


def gate(logits, top_k, ids, weights, *, counts=None, physical_counts=None, **options):
    """As tokenyard.gate, with its options, into ids [num_tokens, top_k + num_shared_experts] int32 or int64
    and weights float32; counts and physical_counts are int32 tensors or None. Raises ValueError where an
    argument is not as it should be.
    """
    _functions.gate(logits, top_k, *_in_order(options), ids, weights, counts, physical_counts)


def route(
    logits,
    top_k,
    block_size,
    ids,
    weights,
    sorted_pair_ids,
    block_expert,
    num_padded,
    *,
    expert_map=None,
    num_local_experts=None,
    **options,
):
    """As tokenyard.route, with its options, into what gate and align are given here. sorted_pair_ids has
    align_capacity() elements or more for num_tokens * (top_k + num_shared_experts) pairs.
    """
    _functions.route(
        logits,
        top_k,
        block_size,
        *_in_order(options),
        expert_map,
        num_local_experts,
        ids,
        weights,
        sorted_pair_ids,
        block_expert,
        num_padded,
    )


def gate_backward(
    weights_grad,
    logits,
    ids,
    top_k,
    logits_grad,
    *,
    score="softmax",
    weight_mode="raw",
    epsilon=0.0,
    scale=1.0,
):
    """The gradient of gate's logits, [num_tokens, num_experts] of their type, from that of its weights.

    ids: gate's, all columns; weights_grad: float32 likewise. Columns beyond top_k are skipped. The options
    are those that gate was given, and there were no replicas.
    """
    _functions.gate_backward(
        weights_grad, logits, ids, top_k, score, weight_mode, epsilon, scale, logits_grad
    )


def router_loss(
    logits,
    losses,
    scratch,
    *,
    ids=None,
    top_k=None,
    counts=None,
    logits_grad=None,
    sequence_offsets=None,
    score="softmax",
    balance_coefficient=0.0,
    z_coefficient=0.0,
):
    """As tokenyard.router_loss, into losses [2], the balance loss and the z-loss, and logits_grad, the
    gradient of their sum. scratch: [2 * ceil(num_tokens / 16)] float32 for the call's own use. counts:
    written where there are ids, read where there are none.
    """
    _functions.router_loss(
        logits,
        ids,
        top_k,
        sequence_offsets,
        score,
        balance_coefficient,
        z_coefficient,
        losses,
        scratch,
        counts,
        logits_grad,
    )


def balance(counts, *, rate=0.001, bias=None, statistics=None):
    """As tokenyard.balance_step, where there is a bias, and as tokenyard.load_statistics, into [4] float32,
    where there is room for them.
    """
    _functions.balance(counts, rate, bias, statistics)
