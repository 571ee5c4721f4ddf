"""vLLM's functions, with the signatures of late 2026. custom_ops holds those that write into their arguments.

Here an expert's pairs stand in ascending order, where vLLM's stand in any.
"""

import torch

from tokenyard.compat.outputs import align_into
from tokenyard.compat.vllm.custom_ops import topk_sigmoid, topk_softmax
from tokenyard.ops import gate

__all__ = ["grouped_topk", "moe_align_block_size", "topk_sigmoid", "topk_softmax"]


def moe_align_block_size(
    topk_ids, block_size, num_experts, expert_map=None, pad_sorted_ids=False, ignore_invalid_experts=False
):
    """fused_moe's moe_align_block_size: (sorted_ids [P], expert_ids [ceil(P / block_size)],
    num_tokens_post_pad [1]).

    P is numel + num_experts * (block_size - 1), with pad_sorted_ids rounded up to a multiple of block_size;
    below num_experts ids no more than numel * block_size. sorted_ids is numel beyond the used slots.
    num_experts counts the experts of all ranks, up to 4096.

    With ignore_invalid_experts the map decides: pairs of experts that it sends to -1 are dropped. Without,
    all experts are sorted and expert_ids are looked up in the map afterwards. vLLM looks up the -1 of unused
    blocks, too, which picks the map's last entry: so does this.
    """
    numel = topk_ids.numel()
    slots = numel + num_experts * (block_size - 1)
    if pad_sorted_ids:
        slots = -(-slots // block_size) * block_size
    if numel < num_experts:
        slots = min(numel * block_size, slots)
    sizes = (slots, -(-slots // block_size), 1)
    outputs = [torch.empty(size, dtype=torch.int32, device=topk_ids.device) for size in sizes]
    local = expert_map is not None and ignore_invalid_experts
    align_into(topk_ids, num_experts, block_size, *outputs, *((expert_map, num_experts) if local else ()))
    if expert_map is not None and not ignore_invalid_experts:
        outputs[1] = expert_map[outputs[1]]
    return tuple(outputs)


def grouped_topk(
    hidden_states,
    gating_output,
    topk,
    renormalize,
    num_expert_group=0,
    topk_group=0,
    scoring_func="softmax",
    routed_scaling_factor=1.0,
    e_score_correction_bias=None,
):
    """grouped_topk's plain formulation: (weights float32, ids int32), both [tokens, topk].

    hidden_states is looked at for its number of tokens alone. Groups are kept by their best expert, with a
    bias by the sum of their two best. With a bias, its choice is by score + bias, its weights by the score.

    Here each token's experts are sorted by the value that chose them, where vLLM may leave them in any order;
    experts of groups that were not kept are never chosen, however few there are.
    """
    if hidden_states.size(0) != gating_output.size(0):
        raise ValueError(
            f"grouped_topk: hidden_states has {hidden_states.size(0)} tokens, expected those of "
            f"gating_output, {gating_output.size(0)}: pass both for the same batch"
        )
    chosen = gate(
        gating_output,
        topk,
        bias=e_score_correction_bias,
        score=scoring_func,
        weight_mode="renormalized" if renormalize else "raw",
        num_groups=num_expert_group,
        kept_groups=topk_group,
        group_score="max" if e_score_correction_bias is None else "top2",
        scale=routed_scaling_factor,
    )
    return chosen.weights, chosen.ids
