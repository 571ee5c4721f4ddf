"""Shapes of what the operators return, for torch.compile and fake tensors: sizes may be symbolic here."""

import inspect

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
def _gate(
    logits,
    top_k,
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
    ids_dtype=None,
):
    shape = (logits.size(0), top_k + num_shared_experts)
    return logits.new_empty(shape, dtype=ids_dtype or torch.int32), logits.new_empty(
        shape, dtype=torch.float32
    )


@torch.library.register_fake("tokenyard::gate_with_counts")
def _gate_with_counts(*args, **options):
    call = inspect.signature(_gate).bind(*args, **options)
    call.apply_defaults()
    logits = call.arguments["logits"]
    physical = 0 if call.arguments["replicas"] is None else call.arguments["num_physical_experts"]
    return *_gate(*args, **options), _ints(logits, logits.size(1)), _ints(logits, physical)


@torch.library.register_fake("tokenyard::gate_out")
def _gate_out(*args, **options):
    return None
