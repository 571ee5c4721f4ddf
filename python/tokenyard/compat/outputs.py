"""What the engines' in-place forms have in common."""

import torch

import tokenyard.ops  # registers torch.ops.tokenyard


def as_pairs(topk_ids):
    """[tokens, top_k] of any integer type and shape, as align takes it: the same pairs under the same
    numbers."""
    if topk_ids.dtype not in (torch.int32, torch.int64):
        topk_ids = topk_ids.to(torch.int64 if topk_ids.dtype in (torch.uint32, torch.uint64) else torch.int32)
    return topk_ids if topk_ids.dim() == 2 else topk_ids.reshape(-1, 1)


def align_into(
    topk_ids,
    num_experts,
    block_size,
    sorted_ids,
    expert_ids,
    num_padded,
    expert_map=None,
    local=None,
    first_id=0,
):
    """align into an engine's buffers; an expert_ids that is longer than the blocks ends in -1."""
    blocks = -(-sorted_ids.numel() // block_size)
    torch.ops.tokenyard.align_out(
        as_pairs(topk_ids),
        num_experts,
        block_size,
        expert_map,
        local,
        first_id,
        sorted_pair_ids=sorted_ids,
        block_expert=expert_ids[:blocks],
        num_padded=num_padded,
    )
    expert_ids[blocks:] = -1


def gate_into(weights, ids, logits, **options):
    """gate into an engine's buffers; ids may be uint32, whose bits are those of int32 here."""
    torch.ops.tokenyard.gate_out(
        logits,
        ids.size(1),
        ids=ids.view(torch.int32) if ids.dtype == torch.uint32 else ids,
        weights=weights,
        **options,
    )
