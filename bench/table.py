#!/usr/bin/env python3
"""Prints a result file of the benchmark as Markdown: table.py bench/results/h200-align.json

First the cases that several implementations were measured on, side by side, then the others.
"""

import sys

import resultfile
from resultfile import OURS


def shape(row):
    ids = row["distribution"]
    if row["dtype"] != "int32":
        ids += f", {row['dtype']}"
    if row["cold"]:
        ids += ", cold"
    if row["linked"]:
        ids += ", linked"
    return [str(row["tokens"]), f"{row['top_k']} of {row['experts']}", str(row["block"]), ids]


def microseconds(value):
    return "" if value is None else f"{value:.2f}"


def markdown(header, alignment, lines):
    yield "| " + " | ".join(header) + " |"
    yield "|" + "|".join("---:" if side == "r" else "---" for side in alignment) + "|"
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def side_by_side(cases):
    """A column an implementation, in µs (median); the fastest of a row in bold."""
    rows = [row for measured in cases for row in measured.values()]
    names = resultfile.implementations(rows)
    unstable = {row["impl"] for row in rows if row["order"] != "stable"}
    partial = {row["impl"] for row in rows if not row["padding_written"]}
    header = ["tokens", "K of E", "block", "ids"]
    header += [name + "\\*" * (name in unstable) + " †" * (name in partial) for name in names]
    header += ["best other ÷ ours", "empty kernel"]

    lines = []
    for measured in cases:
        times = {name: row["us_p50"] for name, row in measured.items()}
        fastest = min(times.values())
        cells = []
        for name in names:
            cell = microseconds(times.get(name))
            cells.append(f"**{cell}**" if times.get(name) == fastest else cell)
        ours = times.pop(OURS, None)
        ratio = f"{min(times.values()) / ours:.2f}" if ours and times else ""
        any_row = next(iter(measured.values()))
        lines.append(shape(any_row) + cells + [ratio, microseconds(any_row["floor_us"])])
    yield from markdown(header, "rrrl" + "r" * (len(header) - 4), lines)
    yield ""
    yield "µs a call, median; the fastest of each row in bold."
    if unstable:
        yield "\\* An expert's pairs stand in any order."
    if partial:
        yield "† Slots without a pair are not written."


def alone(rows):
    lines = [
        shape(row)
        + [
            row["path"] or row["impl"],
            microseconds(row["us_p50"]),
            f"{microseconds(row['us_p20'])} to {microseconds(row['us_p80'])}",
            microseconds(row["floor_us"]),
        ]
        for row in rows
    ]
    header = ["tokens", "K of E", "block", "ids", "path", "µs (median)", "µs (p20 to p80)", "empty kernel, µs"]
    yield from markdown(header, "rrrllrrr", lines)


def source(context):
    command = context["command"]
    commands = f"`{command}`" if isinstance(command, str) else f"{len(command)} commands, recorded in the file"
    return "; ".join(
        [context["device"], context["timer"], context["date"][:10], f"commit {context['commit']}", commands]
    )


def tables(context, rows):
    cases = resultfile.by_case(rows)
    several = [measured for measured in cases.values() if len(measured) > 1]
    single = [row for row in rows if len(cases[resultfile.case(row)]) == 1]
    if several:
        yield from side_by_side(several)
        yield ""
    if single:
        yield from alone(single)
        yield ""
    yield source(context)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("\n".join(tables(*resultfile.read(sys.argv[1]))))


if __name__ == "__main__":
    main()
