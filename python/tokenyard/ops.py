"""torch.ops.tokenyard.*, registered by importing this module, and functions over them.

All take tensors on the CPU or on CUDA. On CUDA they enqueue their work on the current stream and return: nothing
waits for the device, so they can be captured in a CUDA graph and replayed with other routing. Whatever memory a call
needs beside its outputs is its own, so streams and graphs may run beside each other. They have no gradient.
"""

from typing import NamedTuple, Optional

from tokenyard.library import FOLDER, load

try:
    import torch
except ImportError as error:
    raise ImportError("tokenyard.ops needs PyTorch 2.10 or newer: pip install torch") from error

torch.ops.load_library(str(FOLDER / "libtokenyard_torch.so"))


class AlignedOrder(NamedTuple):
    """What align says, int32 tensors on the device of the ids. "experts" are local ones if there is a map."""

    sorted_pair_ids: torch.Tensor
    """[capacity] pairs t * top_k + k: experts ascending, pairs ascending within one; each expert's run is padded to a
    multiple of block_size with the number of pairs, which fills the rest, too"""
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


def align_capacity(num_pairs, experts, block_size):
    """Slots of sorted_pair_ids: enough for every routing, a multiple of block_size.

    >>> align_capacity(num_pairs=8, experts=3, block_size=4)
    20
    """
    slots = load().ty_align_capacity(num_pairs, experts, block_size)
    if slots < 0:
        raise ValueError(
            f"align_capacity: {num_pairs} pairs of {experts} experts in blocks of {block_size}, expected at least 0, "
            "1 to 4096 and 1, and slots that fit in int32: use a smaller block_size or split the batch"
        )
    return slots


def align(topk_ids, num_experts, block_size, *, expert_map=None, num_local_experts=None, details=False):
    """Puts (token, expert) pairs in line: grouped by expert, each group padded to whole blocks, in a stable order.

    topk_ids: [num_tokens, top_k] int32 or int64, the experts of each token. Rows may be any distance apart, but must
        be contiguous. An id outside of 0 to num_experts - 1 drops its pair: -1 for padding tokens, but any is safe.
    num_experts: 1 to 4096.
    block_size: at least 1, the rows of a tile of the matrix products.
    expert_map: [num_experts] int32, the local id of each expert or -1, which drops its pairs. For expert parallelism.
    num_local_experts: the experts of this rank, with an expert_map.
    details: whether counts, offsets, inverse, block_rows and num_dropped are wanted, too; else they are None.

    Returns an AlignedOrder. The order has the same bits on every device. Raises RuntimeError where an argument is not
    as above, in a sentence that says what was expected and what to do.

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
    return AlignedOrder(*operator(topk_ids, num_experts, block_size, expert_map, num_local_experts))


def _capacity(num_pairs, experts, block_size):
    """As ty_align_capacity(), for numbers that may be symbolic."""
    blocks = (num_pairs + experts * (block_size - 1) + block_size - 1) // block_size
    return torch.sym_min(num_pairs, blocks) * block_size


def _ints(like, *sizes):
    return like.new_empty(sizes, dtype=torch.int32)


@torch.library.register_fake("tokenyard::align")
def _align_shapes(topk_ids, num_experts, block_size, expert_map=None, num_local_experts=None):
    experts = num_experts if expert_map is None else num_local_experts
    capacity = _capacity(topk_ids.size(0) * topk_ids.size(1), experts, block_size)
    return _ints(topk_ids, capacity), _ints(topk_ids, capacity // block_size), _ints(topk_ids, 1)


@torch.library.register_fake("tokenyard::align_with_details")
def _align_with_details_shapes(topk_ids, num_experts, block_size, expert_map=None, num_local_experts=None):
    experts = num_experts if expert_map is None else num_local_experts
    order = _align_shapes(topk_ids, num_experts, block_size, expert_map, num_local_experts)
    sizes = ((experts,), (experts + 1,), topk_ids.shape, order[1].shape, (1,))
    return *order, *(_ints(topk_ids, *size) for size in sizes)


@torch.library.register_fake("tokenyard::align_out")
def _align_out_shapes(
    topk_ids, num_experts, block_size, expert_map, num_local_experts, sorted_pair_ids, block_expert, num_padded
):
    return None
