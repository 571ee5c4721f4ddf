#!/usr/bin/env python3
"""Prints the fastest implementations of each case of result files, best first:

    bench/best.py bench/results/h200-align-candidates.json

What `tokenyard bench align --candidates` measured becomes the lists of tuning/align.hpp by reading this.
"""
import argparse
import json
from collections import defaultdict
from pathlib import Path

CASE = ("tokens", "top_k", "experts", "block", "distribution")


def by_case(results):
    """Results, fastest first, of each (tokens, top_k, experts, block, distribution) in the order of the file."""
    cases = defaultdict(list)
    for result in results:
        cases[tuple(result[key] for key in CASE)].append(result)
    return {case: sorted(rows, key=lambda row: row["us_p50"]) for case, rows in cases.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="result files")
    parser.add_argument("--count", type=int, default=4, help="implementations of each case (default: 4)")
    arguments = parser.parse_args()
    for file in arguments.files:
        for case, rows in by_case(json.loads(file.read_text())["results"]).items():
            print("{} x {} of {}, block {}, {}".format(*case))
            for row in rows[: arguments.count]:
                print(f"  {row['us_p50']:8.2f} µs  {row['impl']}")


if __name__ == "__main__":
    main()
