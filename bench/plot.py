#!/usr/bin/env python3
"""Draws time over tokens, a line an implementation: plot.py bench/results/h200-align.json

Writes bench/results/h200-align.svg and .png. Further files add the implementations that those before lack.
"""

import argparse
import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

import resultfile  # noqa: E402
from resultfile import OURS  # noqa: E402

# Okabe and Ito's colours, which most people can tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]


def series(files, chosen):
    """{impl: {tokens: row}} of the rows that match `chosen`; a later file adds what is not there yet."""
    lines = {}
    for rows in files:
        known = set(lines)
        for measured in resultfile.by_case([row for row in rows if chosen(row)]).values():
            for name, row in measured.items():
                if name not in known:
                    lines.setdefault(name, {})[row["tokens"]] = row
    return lines


def plain(value, _):
    return f"{value:g}"


def draw(lines, title, subtitle):
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    names = sorted(lines, key=lambda name: name != OURS)
    for i, name in enumerate(names):
        points = sorted(lines[name].items())
        tokens = [at for at, _ in points]
        low, middle, high = ([row[f"us_{p}"] for _, row in points] for p in ("p20", "p50", "p80"))
        style = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], "markersize": 5}
        axes.plot(tokens, middle, label=name, linewidth=2.5 if name == OURS else 1.5, **style)
        axes.fill_between(tokens, low, high, color=style["color"], alpha=0.2, linewidth=0)

    floors = sorted(
        (at, row["floor_us"]) for at, row in lines[names[0]].items() if row["floor_us"] is not None
    )
    if floors:
        axes.plot(*zip(*floors), color="grey", linestyle="--", linewidth=1.2, label="empty kernel (floor)")

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({at for points in lines.values() for at in points})
    axes.set_xticks(ticks)
    axes.tick_params(axis="x", labelsize=8)
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(plain))
    axes.set_xlabel("tokens")
    axes.set_ylabel("µs a call (median; shaded: p20 to p80)")
    axes.grid(True, which="both", linewidth=0.4, alpha=0.5)
    axes.set_title(title, loc="left", fontsize=11, pad=18)
    axes.annotate(subtitle, (0, 1), (0, 5), "axes fraction", "offset points", fontsize=7, color="dimgrey")
    axes.legend(frameon=False, fontsize=9)
    return figure


def save(figure, stem):
    """SVG and PNG, the same bytes for the same figure."""
    with plt.rc_context({"svg.hashsalt": "tokenyard"}):
        figure.savefig(f"{stem}.svg", metadata={"Date": None})
    figure.savefig(f"{stem}.png", dpi=160, metadata={"Software": None})
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="RESULTS")
    parser.add_argument("--top-k", type=int, default=8)
    parser.add_argument("--experts", type=int, default=256)
    parser.add_argument("--block", type=int, default=128)
    parser.add_argument("--distribution", default="uniform")
    parser.add_argument("--cold", action="store_true", help="the rows with cold caches")
    parser.add_argument("--out", help="where, without ending; by default beside the first file")
    args = parser.parse_args()

    recorded = [resultfile.read(name) for name in args.files]
    wanted = {
        "top_k": args.top_k,
        "experts": args.experts,
        "block": args.block,
        "distribution": args.distribution,
        "dtype": "int32",
        "cold": args.cold,
        "linked": False,
    }
    lines = series(
        [rows for _, rows in recorded],
        lambda row: all(row[field] == value for field, value in wanted.items()),
    )
    if not lines:
        parser.error(f"no row has {wanted}: choose others")
    context = recorded[0][0]
    title = f"align: top {args.top_k} of {args.experts} experts, blocks of {args.block}"
    title += f", {args.distribution} ids"
    if args.cold:
        title += ", cold caches"
    subtitle = f"{context['device']}; {context['timer']}; {context['date'][:10]}; commit {context['commit']}"
    stem = args.out or os.path.splitext(args.files[0])[0]
    save(draw(lines, title, subtitle), stem)
    print(f"{stem}.svg, {stem}.png: {', '.join(sorted(lines, key=lambda name: name != OURS))}")


if __name__ == "__main__":
    main()
