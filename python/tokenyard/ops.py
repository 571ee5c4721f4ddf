"""torch.ops.tokenyard.*, registered by importing this module, and functions over them.

All take tensors on the CPU or on CUDA. On CUDA they enqueue their work on the current stream and return:
nothing waits for the device, so they can be captured in a CUDA graph and replayed with other routing.
Whatever memory a call needs beside its outputs is its own, so streams and graphs may run beside each other.
The weights that the functions gate and route return have a gradient, those of the operators behind them have
none; tokenyard.training has the losses.

PyTorch for ROCm calls its devices "cuda", too: the operators take its tensors if the package was built with
-DTOKENYARD_HIP=ON (compiled; not run on AMD hardware), and refuse them in a sentence if it was not.
"""

import importlib
from typing import NamedTuple, Optional

from tokenyard import schema
from tokenyard.library import FOLDER

try:
    import torch
except ImportError as error:
    raise ImportError("tokenyard.ops needs PyTorch 2.10 or newer: pip install torch") from error
if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10):
    raise ImportError(f"tokenyard.ops needs PyTorch 2.10 or newer, found {torch.__version__}: update it")

torch.ops.load_library(str(FOLDER / "libtokenyard_torch.so"))
importlib.import_module("tokenyard.shapes")  # for torch.compile and fake tensors
gradients = importlib.import_module("tokenyard.gradients")


class AlignedOrder(NamedTuple):
    """What align says, int32 tensors on the device of the ids. "experts" are local ones if there is a map."""

    sorted_pair_ids: torch.Tensor
    """[capacity] pairs t * top_k + k: experts ascending, pairs ascending within one; each expert's run is
    padded to a multiple of block_size with the number of pairs, which fills the rest, too"""
    block_expert: torch.Tensor
    """[capacity / block_size] the expert of each block, -1 beyond the last used one"""
    num_padded: torch.Tensor
    """[1] slots in use, a multiple of block_size"""
    counts: Optional[torch.Tensor] = None
    """[experts] valid pairs of each expert"""
    offsets: Optional[torch.Tensor] = None
    """[experts + 1] the first slot of each expert; the last is num_padded"""
    inverse: Optional[torch.Tensor] = None
    """[num_tokens, top_k] the slot of each pair, -1 if it was dropped"""
    block_rows: Optional[torch.Tensor] = None
    """[capacity / block_size] valid pairs in each block, 0 beyond the last used one"""
    num_dropped: Optional[torch.Tensor] = None
    """[1] pairs that were not valid"""


def align(
    topk_ids, num_experts, block_size, *, expert_map=None, num_local_experts=None, first_id=0, details=False
):
    """Puts (token, expert) pairs in line: by expert, each one's padded to whole blocks, in a stable order.

    topk_ids: [num_tokens, top_k] int32 or int64, the experts of each token. Rows may be any distance apart,
        but must be contiguous. An id that is no expert's drops its pair: -1 for padding tokens, but any is
        safe.
    num_experts: 1 to 4096.
    block_size: at least 1, the rows of a tile of the matrix products.
    expert_map: [num_experts] int32, the local id of each expert or -1, which drops its pairs. For expert
        parallelism.
    num_local_experts: the experts of this rank, with an expert_map.
    first_id: of the first expert, and so in block_expert: ids are first_id to first_id + num_experts - 1. Not
        with an expert_map.
    details: whether counts, offsets, inverse, block_rows and num_dropped are wanted, too; else they are None.

    Returns an AlignedOrder. The order has the same bits on every device. Raises RuntimeError where an
    argument is not as above, in a sentence that says what was expected and what to do.

    >>> import torch, tokenyard
    >>> topk_ids = torch.tensor([[2, 0], [2, 1], [0, 2], [2, 0]])
    >>> order = tokenyard.align(topk_ids, num_experts=3, block_size=4)
    >>> order.sorted_pair_ids[: order.num_padded].view(-1, 4)
    tensor([[1, 4, 7, 8],
            [3, 8, 8, 8],
            [0, 2, 5, 6]], dtype=torch.int32)
    >>> order.block_expert
    tensor([ 0,  1,  2, -1, -1], dtype=torch.int32)
    """
    operator = torch.ops.tokenyard.align_with_details if details else torch.ops.tokenyard.align
    return AlignedOrder(*operator(topk_ids, num_experts, block_size, expert_map, num_local_experts, first_id))


class ChosenExperts(NamedTuple):
    """What gate says, on the device of the logits; K chosen experts a token, then S shared ones."""

    ids: torch.Tensor
    """[num_tokens, K + S] int32 or int64, the highest selection value first; -1 for padding tokens"""
    weights: torch.Tensor
    """[num_tokens, K + S] float32"""
    counts: Optional[torch.Tensor] = None
    """[num_experts] int32, tokens that chose each expert"""
    physical_counts: Optional[torch.Tensor] = None
    """[num_physical_experts] int32, likewise after replicas; without them it is empty"""


@schema.takes_options_of(torch.ops.tokenyard.gate.default)
def gate(logits, top_k, *, counts=False, **options):
    """Chooses top_k experts for each token by a router's logits, and their weights.

    logits: [num_tokens, num_experts] float32, bfloat16 or float16; up to 4096 experts. Rows may be any
        distance apart, but must be contiguous.
    top_k: 1 to 64.
    counts: whether counts and physical_counts are wanted, too; else they are None.

    options:
    bias: [num_experts] float32 or of the logits' type. With one, experts are chosen by score + bias; without,
        by their logits. Equal ones by ascending id.
    score: "softmax", "sigmoid" or "sqrt_softplus", of a logit.
    weight_mode: "raw": the chosen experts' scores; "renormalized": divided by their sum + epsilon;
        "softmax_of_chosen": a softmax over the chosen logits.
    num_groups, kept_groups, group_score: experts fall into num_groups groups of equal size, and are chosen
        from the kept_groups best alone, by the "max" of a group or the sum of its "top2". 0: no groups.
    scale: a factor of every weight.
    num_shared_experts: so many columns more, ids from num_experts up (with replicas, from
        num_physical_experts), each with shared_weight (shared_mode "fixed"), or shared_weight times the sum
        of the token's weights ("of_sum").
    replicas, num_replicas, num_physical_experts: [num_experts, R] and [num_experts] int32: expert e becomes
        one of the first num_replicas[e] physical experts in its row, always the same for the same token.
    num_real_tokens: [1] int32 on the logits' device: rows from this on are padding, ids -1 and weights 0.
    ids_dtype: torch.int32, which None is, too, or torch.int64.

    Returns ChosenExperts; docs/contracts.md says how exact they are, and what becomes of NaN and infinity.
    The weights have a gradient, but no second one: that of the weights of what was chosen, none of the bias,
    and none with replicas. Raises RuntimeError where an argument is not as above, in a sentence that says
    what was expected and what to do.

    >>> import torch, tokenyard
    >>> logits = torch.tensor([[0.0, 3.0, 1.0, 2.0], [4.0, 0.0, 0.0, 4.0]])
    >>> chosen = tokenyard.gate(logits, top_k=2, weight_mode="renormalized", counts=True)
    >>> chosen.ids
    tensor([[1, 3],
            [0, 3]], dtype=torch.int32)
    >>> chosen.weights
    tensor([[0.7311, 0.2689],
            [0.5000, 0.5000]])
    >>> chosen.counts
    tensor([1, 1, 0, 2], dtype=torch.int32)
    """
    operator = torch.ops.tokenyard.gate_with_counts if counts else torch.ops.tokenyard.gate
    return ChosenExperts(*gradients.choose(operator, logits, (top_k,), options))


@schema.takes_options_of(torch.ops.tokenyard.route.default)
def route(logits, top_k, block_size, *, details=False, **options):
    """Chooses as gate does and puts what was chosen in line as align does, in one call: the same bits.

    logits, top_k: as for gate.
    block_size: as for align.
    details: whether all that is optional for gate and align is wanted, too; else it is None.

    options: gate's; and expert_map, num_local_experts as for align, of all ids there are: [num_experts +
    num_shared_experts], or with replicas [num_physical_experts + num_shared_experts].

    Returns ChosenExperts and the AlignedOrder of their ids, all columns, shared experts' too: pair
    t * (top_k + num_shared_experts) + k. The weights have a gradient, as gate's. Raises RuntimeError where an
    argument is not as for gate or align, in a sentence that begins "route: gate: " or "route: align: ".

    >>> import torch, tokenyard
    >>> logits = torch.tensor([[0.0, 3.0, 1.0], [4.0, 0.0, 1.0], [0.0, 1.0, 2.0]])
    >>> chosen, order = tokenyard.route(logits, top_k=2, block_size=2)
    >>> chosen.ids
    tensor([[1, 2],
            [0, 2],
            [2, 1]], dtype=torch.int32)
    >>> order.sorted_pair_ids[: order.num_padded].view(-1, 2)
    tensor([[2, 6],
            [0, 5],
            [1, 3],
            [4, 6]], dtype=torch.int32)
    """
    operator = torch.ops.tokenyard.route_with_details if details else torch.ops.tokenyard.route
    routed = gradients.choose(operator, logits, (top_k, block_size), options)
    chosen = 4 if details else 2
    return ChosenExperts(*routed[:chosen]), AlignedOrder(*routed[chosen:])
