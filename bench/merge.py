#!/usr/bin/env python3
"""Merges result files of one card, driver and build into one: merge.py OUT PART...

Every row of every part is kept. The commands become a list, and of the clocks the lowest is recorded.
"""

import sys

import resultfile

SAME = ("device", "driver", "toolkit", "commit", "timer")


def merge(parts):
    """parts: [(name, context, rows)]; returns (context, rows)."""
    first_name, first, _ = parts[0]
    merged = dict(first)
    rows = []
    for name, context, part in parts:
        for field in SAME:
            if context[field] != first[field]:
                sys.exit(
                    f"{name}: {field} is {context[field]}, expected {first[field]} as in {first_name}: "
                    "measure all parts with one build on one card"
                )
        rows += part
    clocks = [context["sm_clock_mhz"] for _, context, _ in parts if context["sm_clock_mhz"] is not None]
    merged["sm_clock_mhz"] = min(clocks, default=None)
    merged["command"] = [context["command"] for _, context, _ in parts]

    seen = set()
    for row in rows:
        key = (resultfile.case(row), row["impl"], row["path"])
        if key in seen:
            sys.exit(
                f"{row['impl']} has two rows for {row['tokens']} tokens, {row['top_k']} of {row['experts']}, "
                f"blocks of {row['block']}, {row['distribution']} ids: leave one of the parts out"
            )
        seen.add(key)
    return merged, rows


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out, *names = sys.argv[1:]
    context, rows = merge([(name, *resultfile.read(name)) for name in names])
    resultfile.write(out, context, rows)
    print(f"{out}: {len(rows)} rows of {len(names)} files")


if __name__ == "__main__":
    main()
