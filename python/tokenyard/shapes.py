"""Shapes of what the operators return, for torch.compile and fake tensors: sizes may be symbolic here."""

import torch


def _capacity(num_pairs, experts, block_size):
    """As ty_align_capacity()."""
    blocks = (num_pairs + experts * (block_size - 1) + block_size - 1) // block_size
    return torch.sym_min(num_pairs, blocks) * block_size


def _ints(like, *sizes):
    return like.new_empty(sizes, dtype=torch.int32)


@torch.library.register_fake("tokenyard::align")
def _align(topk_ids, num_experts, block_size, expert_map=None, num_local_experts=None):
    experts = num_experts if expert_map is None else num_local_experts
    capacity = _capacity(topk_ids.size(0) * topk_ids.size(1), experts, block_size)
    return _ints(topk_ids, capacity), _ints(topk_ids, capacity // block_size), _ints(topk_ids, 1)


@torch.library.register_fake("tokenyard::align_with_details")
def _align_with_details(topk_ids, num_experts, block_size, expert_map=None, num_local_experts=None):
    experts = num_experts if expert_map is None else num_local_experts
    order = _align(topk_ids, num_experts, block_size, expert_map, num_local_experts)
    sizes = ((experts,), (experts + 1,), topk_ids.shape, order[1].shape, (1,))
    return *order, *(_ints(topk_ids, *size) for size in sizes)


@torch.library.register_fake("tokenyard::align_out")
def _align_out(topk_ids, num_experts, block_size, expert_map=None, num_local_experts=None, **outputs):
    return None


@torch.library.register_fake("tokenyard::gate")
def _gate(logits, top_k, *, num_shared_experts=0, ids_dtype=None, **options):
    columns = top_k + num_shared_experts
    ids = logits.new_empty((logits.size(0), columns), dtype=ids_dtype or torch.int32)
    return ids, logits.new_empty((logits.size(0), columns), dtype=torch.float32)


@torch.library.register_fake("tokenyard::gate_with_counts")
def _gate_with_counts(logits, top_k, *, replicas=None, num_physical_experts=0, **options):
    physical = 0 if replicas is None else num_physical_experts
    return *_gate(logits, top_k, **options), _ints(logits, logits.size(1)), _ints(logits, physical)


@torch.library.register_fake("tokenyard::gate_out")
def _gate_out(logits, top_k, **options):
    return None
