"""Result files of the benchmark: reading, writing, and which rows belong together. See docs/benchmarking.md."""

import json
import sys

CASE = ("op", "tokens", "top_k", "experts", "block", "dtype", "distribution", "cold", "linked")
OURS = "tokenyard"


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            recorded = json.load(file)
        for row in recorded["results"]:
            row.setdefault("linked", False)  # older files do not say
        return recorded["context"], recorded["results"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(
            f"{path}: is no result file, expected context and results of tokenyard bench --json: {error!r}"
        )


def write(path, context, rows):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"context": context, "results": rows}, file, indent=2, ensure_ascii=False)
        file.write("\n")


def case(row):
    return tuple(row[field] for field in CASE)


def by_case(rows):
    """{case: {impl: row}}, both in the order of the file; of an implementation's paths the fastest."""
    cases = {}
    for row in rows:
        measured = cases.setdefault(case(row), {})
        known = measured.get(row["impl"])
        if known is None or row["us_p50"] < known["us_p50"]:
            measured[row["impl"]] = row
    return cases


def implementations(rows):
    """The names in `rows`, ours first, the others in the order of the file."""
    return sorted(dict.fromkeys(row["impl"] for row in rows), key=lambda name: name != OURS)
