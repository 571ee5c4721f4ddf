#!/usr/bin/env python3
"""Prints a result file of `tokenyard bench` as a Markdown table: table.py bench/results/h200-align.json"""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    recorded = json.load(file)
context = recorded["context"]
print("| tokens | K of E | block | ids | path | µs (median) | µs (p20 to p80) | empty kernel, µs |")
print("|---:|---|---:|---|---|---:|---|---:|")
for row in recorded["results"]:
    floor = row.get("floor_us")
    print(
        f"| {row['tokens']} | {row['top_k']} of {row['experts']} | {row['block']} | {row['distribution']} "
        f"| {row['path']} | {row['us_p50']:.2f} | {row['us_p20']:.2f} to {row['us_p80']:.2f} "
        f"| {'' if floor is None else f'{floor:.2f}'} |"
    )
print()
print(
    f"{context['device']}; {context['timer']}; {context['date'][:10]}; commit {context['commit']}; "
    f"`{context['command']}`"
)
