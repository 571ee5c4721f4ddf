"""Draws the pictures of the documents: pictures.py FOLDER writes order.svg and load.svg.

Needs tokenyard with PyTorch, and matplotlib.
"""

import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from tokenyard import plot, routings  # noqa: E402

ROUTINGS = pathlib.Path(__file__).parent / "routings"
STEP, LAYER, EXPERTS = 400, 3, 64


def order():
    """That of the README: four tokens that choose two of three experts."""
    return plot.order([[2, 0], [2, 1], [0, 2], [2, 0]], num_experts=3, block_size=4).figure


def load():
    figure, rows = plt.subplots(2, figsize=(8, 5), sharex=True, sharey=True, layout="constrained")
    for axes, training in zip(rows, ("unbalanced", "balanced")):
        ids = routings.read(ROUTINGS / training / f"step-{STEP}-layer-{LAYER}.npy")
        plot.load(ids, EXPERTS, axes)
        axes.set_title(f"{training}; {axes.get_title()}", fontsize=10)
    rows[0].set_xlabel("")
    return figure


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "tokenyard"  # the same bytes for the same picture
    for draw in (order, load):
        draw().savefig(folder / f"{draw.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
