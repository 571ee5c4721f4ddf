"""Pictures of routings and orders, with matplotlib: drawn into `axes`, or into new ones, and returned.

>>> from tokenyard import plot
>>> topk_ids = [[2, 0], [2, 1], [0, 2], [2, 0]]
>>> axes = plot.order(topk_ids, num_experts=3, block_size=4)
>>> axes = plot.load(topk_ids, num_experts=3)
>>> axes.figure.savefig("/dev/null", format="png")
"""

import numpy as np
import torch

from tokenyard.ops import align

try:
    import matplotlib.pyplot as plt
except ImportError as error:
    raise ImportError("tokenyard.plot needs matplotlib: pip install matplotlib") from error

MOST_SLOTS = 1024
PADDING = "#dddddd"


def order(topk_ids, num_experts, block_size, axes=None):
    """What align makes of a small problem, a row a block: in each slot its token.choice, coloured by expert.

    topk_ids: [num_tokens, top_k] int32 or int64; at most 1024 slots may come into use. Padding is grey.
    """
    topk_ids = torch.as_tensor(topk_ids)
    aligned = align(topk_ids, num_experts, block_size, details=True)
    used = int(aligned.num_padded)
    if used > MOST_SLOTS:
        raise ValueError(
            f"plot.order: {used} slots, expected at most {MOST_SLOTS}: draw a smaller problem, or its load"
        )
    blocks = used // block_size
    experts, rows = aligned.block_expert[:blocks].tolist(), aligned.block_rows[:blocks].tolist()
    if axes is None:
        axes = plt.subplots(figsize=(0.5 * block_size + 1.5, 0.3 * blocks + 1), layout="constrained")[1]
    for slot, pair in enumerate(aligned.sorted_pair_ids[:used].tolist()):
        block, column = divmod(slot, block_size)
        real = column < rows[block]
        colour = plt.get_cmap("tab20")(experts[block] % 20) if real else PADDING
        axes.add_patch(plt.Rectangle((column, block), 1, 1, facecolor=colour, edgecolor="white"))
        if real:
            token, choice = divmod(pair, topk_ids.size(1))
            axes.text(column + 0.5, block + 0.5, f"{token}.{choice}", ha="center", va="center", fontsize=7)
    axes.set(xlim=(0, block_size), ylim=(max(blocks, 1), 0), xticks=[], xlabel="slots: token.choice")
    axes.set_yticks(np.arange(blocks) + 0.5, [f"expert {expert}" for expert in experts])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes


def load(topk_ids, num_experts, axes=None):
    """How many pairs each expert gets, and the mean; ids that are no expert's are left out.

    topk_ids: [num_tokens, top_k] integers.
    """
    ids = torch.as_tensor(topk_ids).cpu().numpy().ravel()
    counts = np.bincount(ids[(ids >= 0) & (ids < num_experts)], minlength=num_experts)
    if axes is None:
        axes = plt.subplots(figsize=(8, 3), layout="constrained")[1]
    axes.bar(np.arange(num_experts), counts, width=0.9, color="#0072B2")
    axes.axhline(counts.mean(), color="#D55E00", linewidth=1, label=f"mean {counts.mean():.1f}")
    axes.set(xlabel="expert", ylabel="pairs", xlim=(-0.6, num_experts - 0.4))
    busiest = counts.max() / counts.mean() if counts.any() else 0
    axes.set_title(
        f"most: {busiest:.2f} x mean; idle: {np.count_nonzero(counts == 0)} of {num_experts}", fontsize=10
    )
    axes.legend(frameon=False)
    return axes
