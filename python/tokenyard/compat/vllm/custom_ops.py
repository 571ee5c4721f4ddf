"""vLLM's _custom_ops that write into their arguments."""

import torch

from tokenyard.compat.outputs import align_into, gate_into


def moe_align_block_size(
    topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, expert_map=None
):
    """Sorts into sorted_token_ids [P], experts_ids and num_tokens_post_pad [1], all int32.

    An id below 0 or from num_experts on is dropped, as is one that the map sends to -1. sorted_token_ids is
    written whole, numel where there is no pair; experts_ids is -1 beyond the last used block. ids may be of
    any integer type.
    """
    local = () if expert_map is None else (expert_map, num_experts)
    align_into(topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, *local)


def topk_softmax(
    topk_weights,
    topk_ids,
    token_expert_indices,
    gating_output,
    renormalize=False,
    e_score_correction_bias=None,
):
    """Chooses by a softmax of gating_output [tokens, experts] into topk_weights float32, topk_ids int32,
    int64 or uint32, and token_expert_indices int32, all [tokens, topk].

    token_expert_indices[t, k] is k * tokens + t, whatever the experts: a place in a list sorted by choice.
    """
    _choose(
        "softmax",
        topk_weights,
        topk_ids,
        token_expert_indices,
        gating_output,
        renormalize,
        e_score_correction_bias,
    )


def topk_sigmoid(
    topk_weights,
    topk_ids,
    token_expert_indices,
    gating_output,
    renormalize=False,
    e_score_correction_bias=None,
):
    """As topk_softmax, by a sigmoid."""
    _choose(
        "sigmoid",
        topk_weights,
        topk_ids,
        token_expert_indices,
        gating_output,
        renormalize,
        e_score_correction_bias,
    )


def _choose(score, weights, ids, indices, logits, renormalize, bias):
    mode = "renormalized" if renormalize else "raw"
    gate_into(weights, ids, logits, bias=bias, score=score, weight_mode=mode)
    tokens, top_k = ids.shape
    indices.T.copy_(
        torch.arange(tokens * top_k, dtype=indices.dtype, device=indices.device).view(top_k, tokens)
    )
