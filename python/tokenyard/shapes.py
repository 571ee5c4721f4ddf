"""Shapes of what the operators return, for torch.compile and fake tensors: sizes may be symbolic here."""

import torch

from tokenyard import schema


def _fake(name):
    """Registers a function of a call's arguments by name, defaults included."""
    operator = getattr(torch.ops.tokenyard, name).default

    def register(shapes):
        torch.library.register_fake(
            f"tokenyard::{name}", lambda *args, **options: shapes(schema.named(operator, args, options))
        )
        return shapes

    return register


def _capacity(num_pairs, experts, block_size):
    """As ty_align_capacity()."""
    blocks = (num_pairs + experts * (block_size - 1) + block_size - 1) // block_size
    return torch.sym_min(num_pairs, blocks) * block_size


def _ints(like, *sizes):
    return like.new_empty(sizes, dtype=torch.int32)


def _floats(like, *sizes):
    return like.new_empty(sizes, dtype=torch.float32)


def _order(ids, num_experts, call):
    """Of ids among num_experts, and of an expert_map."""
    experts = num_experts if call.expert_map is None else call.num_local_experts
    capacity = _capacity(ids.size(0) * ids.size(1), experts, call.block_size)
    return _ints(ids, capacity), _ints(ids, capacity // call.block_size), _ints(ids, 1)


def _details(ids, num_experts, call):
    experts = num_experts if call.expert_map is None else call.num_local_experts
    blocks = _order(ids, num_experts, call)[1].shape
    return tuple(_ints(ids, *size) for size in ((experts,), (experts + 1,), ids.shape, blocks, (1,)))


def _chosen(call):
    shape = (call.logits.size(0), call.top_k + call.num_shared_experts)
    return call.logits.new_empty(shape, dtype=call.ids_dtype or torch.int32), _floats(call.logits, *shape)


def _counts(call):
    physical = 0 if call.replicas is None else call.num_physical_experts
    return _ints(call.logits, call.logits.size(1)), _ints(call.logits, physical)


def _id_bound(call):
    physical = call.logits.size(1) if call.replicas is None else call.num_physical_experts
    return physical + call.num_shared_experts


@_fake("align")
def _align(call):
    return _order(call.topk_ids, call.num_experts, call)


@_fake("align_with_details")
def _align_with_details(call):
    return *_align(call), *_details(call.topk_ids, call.num_experts, call)


@_fake("gate")
def _gate(call):
    return _chosen(call)


@_fake("gate_with_counts")
def _gate_with_counts(call):
    return *_chosen(call), *_counts(call)


@_fake("route")
def _route(call):
    chosen = _chosen(call)
    return *chosen, *_order(chosen[0], _id_bound(call), call)


@_fake("route_with_details")
def _route_with_details(call):
    ids, weights = _chosen(call)
    bound = _id_bound(call)
    return ids, weights, *_counts(call), *_order(ids, bound, call), *_details(ids, bound, call)


@_fake("gate_backward")
def _gate_backward(call):
    return call.logits.new_empty(call.logits.shape)


@_fake("router_loss")
def _router_loss(call):
    logits, offsets = call.logits, call.sequence_offsets
    is_counted = call.ids is not None and call.balance_coefficient != 0
    sequences = 0 if not is_counted else 1 if offsets is None else offsets.numel() - 1
    counts = _ints(logits, sequences, logits.size(1))
    return _floats(logits), _floats(logits, 2), counts, logits.new_empty(logits.shape)


@_fake("load_statistics")
def _load_statistics(call):
    return _floats(call.counts, 4)


@_fake("align_out")
@_fake("gate_out")
@_fake("route_out")
@_fake("balance_step")
def _nothing(call):
    return None
