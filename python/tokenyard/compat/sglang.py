"""sgl_kernel's functions, with the signatures of late 2026.

Here an expert's pairs stand in ascending order, where SGLang's stand in any.
"""

import torch

from tokenyard.compat.outputs import align_into, gate_into
from tokenyard.ops import gate


def moe_align_block_size(
    topk_ids,
    num_experts,
    block_size,
    sorted_token_ids,
    experts_ids,
    num_tokens_post_pad,
    cumsum_buffer,
    pad_sorted_token_ids=False,
    ignore_invalid_expert=False,
):
    """Sorts into sorted_token_ids [P], experts_ids and num_tokens_post_pad [1], all int32.

    num_experts is the number of buckets, one more than there are experts: bucket 0 is for id -1, so that the
    blocks of tokens that are none come first, with expert -1. With ignore_invalid_expert such pairs are
    dropped. Other ids outside of the experts, which SGLang leaves undefined, are dropped.

    SGLang leaves experts_ids beyond the last used block as it was, and without pad_sorted_token_ids
    sorted_token_ids beyond the padded length, too: here they are -1 and numel. cumsum_buffer, its scratch, is
    not touched.
    """
    outputs = (sorted_token_ids, experts_ids, num_tokens_post_pad)
    if ignore_invalid_expert:
        align_into(topk_ids, num_experts - 1, block_size, *outputs)
    else:
        align_into(topk_ids, num_experts, block_size, *outputs, first_id=-1)


def topk_softmax(
    topk_weights, topk_ids, gating_output, renormalize=False, moe_softcapping=0.0, correction_bias=None
):
    """Chooses by a softmax of gating_output [tokens, experts] into topk_weights float32 and topk_ids int32,
    both [tokens, topk].

    With moe_softcapping c, logits x become c * tanh(x / c) first. A correction_bias is added to the logits,
    so that it is in the weights, too: not as in vLLM.

    Older versions have (topk_weights, topk_ids, token_expert_indices, gating_output, renormalize): that is
    taken, and token_expert_indices is left as it was.
    """
    if isinstance(renormalize, torch.Tensor):
        gating_output, renormalize, moe_softcapping = renormalize, bool(moe_softcapping), 0.0
    if moe_softcapping != 0:
        gating_output = moe_softcapping * torch.tanh(gating_output.float() / moe_softcapping)
    if correction_bias is not None:
        gating_output = gating_output.float() + correction_bias
    gate_into(topk_weights, topk_ids, gating_output, weight_mode="renormalized" if renormalize else "raw")


def moe_fused_gate(
    input_tensor,
    bias,
    num_expert_group,
    topk_group,
    topk,
    renormalize=True,
    scoring_func="sigmoid",
    num_fused_shared_experts=0,
    routed_scaling_factor=0,
    apply_routed_scaling_factor_on_output=False,
):
    """DeepSeek's gate: [weights float32, ids int32], both [tokens, topk].

    topk includes the shared experts, which take the last columns: ids from the number of experts up, each
    with the sum of the token's routed weights divided by routed_scaling_factor. That factor multiplies the
    weights, those of shared experts too, only with apply_routed_scaling_factor_on_output. Groups are kept by
    the sum of their two best.

    Any number of experts up to 4096, where SGLang wants a power of two and at most 32 a group.
    """
    shared = num_fused_shared_experts > 0
    if (shared or apply_routed_scaling_factor_on_output) and routed_scaling_factor == 0:
        raise ValueError(
            "moe_fused_gate: routed_scaling_factor is 0, expected the model's factor: shared "
            "experts' weights are divided by it"
        )
    chosen = gate(
        input_tensor,
        topk - num_fused_shared_experts,
        bias=bias,
        score=scoring_func,
        weight_mode="renormalized" if renormalize else "raw",
        num_groups=num_expert_group,
        kept_groups=topk_group,
        group_score="top2",
        scale=routed_scaling_factor if apply_routed_scaling_factor_on_output else 1.0,
        num_shared_experts=num_fused_shared_experts,
        shared_mode="of_sum",
        shared_weight=1 / routed_scaling_factor if shared else 1.0,
    )
    return [chosen.weights, chosen.ids]
