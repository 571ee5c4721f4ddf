"""What align and gate have to say, by their definitions: read first, fast never."""

import numpy as np

import tokenyard


def align(ids, experts, block, expert_map=None, local_experts=None, first_id=0):
    """ids: [tokens, top_k] numpy integers. Every output of align by its name, as int32 arrays."""
    pairs = ids.size
    buckets = [[] for _ in range(local_experts or experts)]
    inverse = np.full(pairs, -1)
    for pair, id in enumerate(ids.ravel().tolist()):
        expert = id - first_id
        if 0 <= expert < experts:
            local = expert if expert_map is None else expert_map[expert]
            if 0 <= local < len(buckets):
                buckets[local].append(pair)
    order, block_expert, block_rows, offsets = [], [], [], [0]
    for expert, bucket in enumerate(buckets):
        for first in range(0, len(bucket), block):
            rows = bucket[first : first + block]
            inverse[rows] = range(len(order), len(order) + len(rows))
            order += rows + [pairs] * (block - len(rows))
            block_expert.append(first_id + expert)
            block_rows.append(len(rows))
        offsets.append(len(order))
    capacity = tokenyard.align_capacity(pairs, len(buckets), block)
    unused = capacity // block - len(block_expert)
    lists = {
        "sorted_pair_ids": order + [pairs] * (capacity - len(order)),
        "block_expert": block_expert + [-1] * unused,
        "num_padded": [len(order)],
        "counts": [len(bucket) for bucket in buckets],
        "offsets": offsets,
        "inverse": inverse.reshape(ids.shape),
        "block_rows": block_rows + [0] * unused,
        "num_dropped": [pairs - sum(block_rows)],
    }
    return {name: np.asarray(values, np.int32) for name, values in lists.items()}


def scores(logits, score):
    """[tokens, experts] float64 scores of float64 logits; a NaN's is 0."""
    with np.errstate(over="ignore"):
        if score == "softmax":
            return softmax(logits)
        if score == "sigmoid":
            values = 1 / (1 + np.exp(-logits))
        else:
            values = np.sqrt(np.logaddexp(0, logits))
    return np.where(np.isnan(values), 0, values)


def softmax(logits):
    """Over rows, NaN left out, a row without numbers 0."""
    numbers = np.where(np.isnan(logits), -np.inf, logits)
    highest = numbers.max(axis=-1, keepdims=True)
    powers = np.exp(numbers - np.where(np.isfinite(highest), highest, 0))
    total = powers.sum(axis=-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)


def gate(logits, top_k, bias=None, score="softmax", weight_mode="raw", groups=None, epsilon=0.0, scale=1.0):
    """logits: [tokens, experts] float64; groups: number, how many are kept, "max" or "top2". Ids and
    weights."""
    values = scores(logits, score)
    selection = np.where(np.isnan(logits), -np.inf, logits if bias is None else values + bias)
    if groups is not None:
        selection = keep_groups(selection, values if bias is None else selection, *groups)
    ids = np.argsort(-selection, axis=-1, kind="stable")[:, :top_k]
    chosen = np.take_along_axis(values, ids, axis=-1)
    if weight_mode == "softmax_of_chosen":
        chosen = softmax(np.take_along_axis(logits, ids, axis=-1))
    elif weight_mode == "renormalized":
        total = chosen.sum(axis=-1, keepdims=True) + epsilon
        chosen = np.divide(chosen, total, out=np.zeros_like(chosen), where=total > 0)
    return ids, scale * chosen


def keep_groups(selection, summed, number, kept, group_score):
    tokens, experts = selection.shape
    grouped = (tokens, number, experts // number)
    if group_score == "max":
        value = selection.reshape(grouped).max(axis=-1)
    else:
        value = np.sort(summed.reshape(grouped), axis=-1)[..., -2:].sum(axis=-1)
    best = np.argsort(-value, axis=-1, kind="stable")[:, :kept]
    keep = np.zeros((tokens, number), bool)
    np.put_along_axis(keep, best, True, axis=-1)
    return np.where(np.repeat(keep, experts // number, axis=-1), selection, -np.inf)
