#!/usr/bin/env python3
"""Draws how near align comes to what the card allows: roofline.py RESULTS PROFILE, files of the benchmark and
of ncu.py. Writes a picture beside the profile, as SVG and PNG.

Left, a roofline for work that is not arithmetic: what a call must move (ids in, outputs out) against the rate
at which it moves it. The slanted roof is the time that even an empty kernel takes, the flat ones are the
bandwidths of the card. A point below both waits for something else, and the bars to the right say for what:
each kernel's warps, by why they do not issue.
"""

import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import ncu  # noqa: E402
import plot  # noqa: E402
import resultfile  # noqa: E402
from baselines.numpy_align import capacity  # noqa: E402
from plot import COLOURS, MARKERS  # noqa: E402

REASONS = 5  # named for each kernel; the rest is added up


def bytes_moved(row):
    """int32 ids, sorted_pair_ids and block_expert, each once."""
    pairs = row["tokens"] * row["top_k"]
    slots = capacity(pairs, row["experts"], row["block"])
    return 4 * (pairs + slots + slots // row["block"] + 1)


def draw_roofs(axes, moved, floor_us, peaks):
    ends = [min(moved) / 2, max(moved) * 2]
    axes.plot(ends, [size / floor_us / 1e3 for size in ends], color="grey", linestyle="--", linewidth=1.2)
    middle = (ends[0] * ends[1]) ** 0.5
    axes.annotate(
        f"an empty kernel: {floor_us:.2f} µs",
        (middle, middle / floor_us / 1e3),
        (-6, 6),
        textcoords="offset points",
        fontsize=8,
        color="dimgrey",
        ha="right",
    )
    for name, label in (("dram", "memory"), ("l2", "L2")):
        if peaks.get(name):
            axes.axhline(peaks[name] / 1e9, color="grey", linestyle=":", linewidth=1.2)
            axes.annotate(
                f"{label}: {peaks[name] / 1e12:.1f} TB/s",
                (ends[0], peaks[name] / 1e9),
                (4, 3),
                textcoords="offset points",
                fontsize=8,
                color="dimgrey",
            )


def draw_roofline(axes, lines, peaks):
    rows = [row for points in lines.values() for row in points.values()]
    floors = sorted(row["floor_us"] for row in rows if row["floor_us"] is not None)
    draw_roofs(axes, [bytes_moved(row) for row in rows], floors[len(floors) // 2], peaks)
    for i, (name, points) in enumerate(sorted(lines.items(), key=lambda item: item[0] != resultfile.OURS)):
        ordered = [points[tokens] for tokens in sorted(points)]
        moved = [bytes_moved(row) for row in ordered]
        rates = [size / row["us_p50"] / 1e3 for size, row in zip(moved, ordered)]
        axes.plot(moved, rates, label=name, color=COLOURS[i % len(COLOURS)], marker=MARKERS[i % len(MARKERS)])
        if name == resultfile.OURS:
            for size, rate, row in zip(moved, rates, ordered):
                tokens = str(row["tokens"])
                axes.annotate(tokens, (size, rate), (-4, 7), textcoords="offset points", fontsize=7, ha="right")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("bytes that a call must move")
    axes.set_ylabel("GB/s, of those bytes")
    axes.grid(True, which="major", linewidth=0.4, alpha=0.5)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    axes.set_title("rate, tokens at each point", loc="left", fontsize=10)


def stall_bars(results):
    """[(label, {reason: share})], a kernel each; reasons beyond the largest ones are "other"."""
    bars = []
    for result in results:
        for i, kernel in enumerate(result["kernels"]):
            part = f" {i + 1}" if len(result["kernels"]) > 1 else ""
            shares = dict(list(kernel["stalls"].items())[:REASONS])
            rest = sum(kernel["stalls"].values()) - sum(shares.values())
            bars.append((f"{result['path']}{part}, {result['tokens']}", {**shares, "other": rest}))
    return bars


def draw_stalls(axes, bars):
    reasons = list(dict.fromkeys(reason for _, shares in bars for reason in shares if reason != "other"))
    colours = {reason: plt.get_cmap("tab20")(i % 20) for i, reason in enumerate(reasons)}
    colours["other"] = "lightgrey"
    for y, (_, shares) in enumerate(bars):
        left = 0
        for reason, share in shares.items():
            axes.barh(y, share, left=left, color=colours[reason], edgecolor="white", linewidth=0.5)
            if share > 0.12:
                axes.text(left + share / 2, y, reason.replace("_", "\n"), ha="center", va="center", fontsize=6)
            left += share
    axes.set_yticks(range(len(bars)), [label for label, _ in bars], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the cycles that warps wait")
    axes.set_title("why warps wait: path, tokens", loc="left", fontsize=10)


def draw(lines, profile_context, profile_results):
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained", width_ratios=(3, 2))
    draw_roofline(left, lines, profile_context["peak_bytes_per_s"])
    draw_stalls(right, stall_bars(profile_results))
    figure.suptitle(
        f"align, top 8 of 256 experts, blocks of 128, uniform ids; {profile_context['device']}; "
        f"{profile_context['toolkit']}; {profile_context['date'][:10]}; commit {profile_context['commit']}",
        fontsize=8,
        x=0.01,
        ha="left",
    )
    return figure


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    _, rows = resultfile.read(sys.argv[1])
    context, results = resultfile.read(sys.argv[2])
    wanted = {**ncu.SHAPE, "distribution": "uniform", "dtype": "int32", "cold": False, "linked": False}
    lines = plot.series([rows], lambda row: all(row[field] == value for field, value in wanted.items()))
    if not any(row["floor_us"] is not None for points in lines.values() for row in points.values()):
        sys.exit(f"{sys.argv[1]}: no row of a GPU has {wanted}, expected the main table of the benchmark")
    stem = os.path.splitext(sys.argv[2])[0]
    plot.save(draw(lines, context, results), stem)
    print(f"{stem}.svg, {stem}.png")


if __name__ == "__main__":
    main()
