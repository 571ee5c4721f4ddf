#!/usr/bin/env python3
"""Profiles align's kernels with Nsight Compute, each path at some numbers of tokens, into a JSON file:

    bench/ncu.py --program build/gpu/bin/tokenyard_profile --out profile.json everywhere:64,1024 grid:16384 split:16384

Each launch is the only one of its process, with flushed caches. The whole process is run again for each set of
counters (application replay): a kernel whose blocks poll each other cannot be replayed alone. The grid path's
kernels are not launched cooperatively here: see bench/profile/align.cu. What the profiler does not know or could
not count becomes null.
"""

import argparse
import csv
import io
import json
import math
import re
import subprocess
import sys
import tempfile

import machine

SHAPE = {"top_k": 8, "experts": 256, "block": 128}

# Our names: the profiler's. Bytes are those that crossed between the memory, the second-level cache (L2) and
# the multiprocessors; a sector is 32 bytes, a request one instruction of a warp.
METRICS = {
    "duration_ns": "gpu__time_duration.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_written_bytes": "dram__bytes_write.sum",
    "l2_bytes": "lts__t_bytes.sum",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "shared_bytes": "launch__shared_mem_per_block",
}
# Peaks in bytes a cycle, and the cycles a second: the bandwidths of the card.
PEAKS = {
    "dram": ("dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second"),
    "l2": ("lts__t_bytes.sum.peak_sustained", "lts__cycles_elapsed.avg.per_second"),
}
STALL = re.compile(r"smsp__average_warps?_issue_stalled_(\w+)_per_issue_active\.ratio")
NOT_WAITING = {"selected", "not_selected"}


def number(text):
    try:
        value = float(text.replace(",", ""))
    except (AttributeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def ratio(a, b):
    return a / b if a is not None and b else None


def parse(report):
    """The rows of `ncu --csv --page raw`, as dictionaries, without what stands around the table."""
    lines = report.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        return []
    rows = csv.DictReader(io.StringIO("\n".join(lines[start:])))
    return [row for row in rows if number(row["ID"]) is not None]  # the first has units


def stalls(row):
    """{reason: share of the cycles that warps wait}, the largest first."""
    cycles = {}
    for name, value in row.items():
        match = STALL.fullmatch(name or "")
        if match and match[1] not in NOT_WAITING and number(value) is not None:
            cycles[match[1]] = number(value)
    total = sum(cycles.values())
    shares = {reason: round(count / total, 3) for reason, count in cycles.items()} if total else {}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def kernel(row):
    counted = {name: number(row.get(metric)) for name, metric in METRICS.items()}
    for kind in ("load", "store"):
        counted[f"sectors_per_{kind}_request"] = ratio(
            counted.pop(f"{kind}_sectors"), counted.pop(f"{kind}_requests")
        )
    return {"grid": row.get("Grid Size"), "threads": row.get("Block Size"), **counted, "stalls": stalls(row)}


def peaks(rows):
    """{"dram": bytes/s, "l2": bytes/s} of the first row that has them."""
    found = {}
    for name, (per_cycle, cycles) in PEAKS.items():
        products = (
            number(row.get(per_cycle)) * number(row.get(cycles))
            for row in rows
            if number(row.get(per_cycle)) and number(row.get(cycles))
        )
        found[name] = next(products, None)
    return found


def profile(program, path, tokens):
    metrics = [*METRICS.values(), *(name for pair in PEAKS.values() for name in pair)]
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as report:
        command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--force-overwrite"]
        command += ["--replay-mode", "application", "--cache-control", "all", "--clock-control", "none"]
        command += ["--section", "WarpStateStats", "--metrics", ",".join(metrics), "--kernel-name", "run"]
        command += ["--log-file", report.name]
        command += [program, "--path", path, "--tokens", str(tokens)]
        for field, value in SHAPE.items():
            command += [f"--{field.replace('_', '-')}", str(value)]
        print("+", " ".join(command), flush=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        text = report.read()
        rows = parse(text)
        if done.returncode != 0 or not rows:
            said = f"{done.stdout}{done.stderr}{text}"[:2000]
            print(f"{path}, {tokens} tokens: not profiled: {said}", file=sys.stderr)
        return rows


def cases(words):
    for word in words:
        path, _, sizes = word.partition(":")
        for tokens in sizes.split(","):
            if not tokens.isdigit():
                sys.exit(f"{word}: expected a path and numbers of tokens, as in grid:4096,16384")
            yield path, int(tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, metavar="FILE", help="tokenyard_profile, of bench/profile")
    parser.add_argument("--out", required=True, metavar="FILE")
    parser.add_argument("cases", nargs="+", metavar="PATH:TOKENS,...")
    args = parser.parse_args()

    results, all_rows = [], []
    for path, tokens in list(cases(args.cases)):
        rows = profile(args.program, path, tokens)
        all_rows += rows
        kernels = [kernel(row) for row in rows]
        results.append({"op": "align", "path": path, "tokens": tokens, **SHAPE, "kernels": kernels})
    context = {
        "device": f"cuda: {machine.ask_card('name')}",
        "driver": machine.ask_card("driver_version"),
        "sm_clock_mhz": machine.sm_clock_mhz(),
        "toolkit": (machine.first_line("sh", "-c", "ncu --version | tail -n 1") or "ncu").strip(),
        "commit": machine.commit(),
        "date": machine.now(),
        "caches": "flushed before each launch",
        "command": machine.command_line(sys.argv),
        "peak_bytes_per_s": peaks(all_rows),
    }
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump({"context": context, "results": results}, file, indent=2)
        file.write("\n")
    if not all_rows:
        sys.exit("nothing was profiled: see above")


if __name__ == "__main__":
    main()
