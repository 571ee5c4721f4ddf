#!/usr/bin/env python3
"""Counts what align's kernels need of AMD's cards, from the code that clang makes for them; without a card:

    bench/amd.py count --rocm build/rocm --out bench/results/amd-code.json
    bench/amd.py table bench/results/amd-code.json

--rocm is a tree with include/ and amdgcn/bitcode/ (cmake/debian_rocm.cmake makes one). Counted are the kernels
for int32 ids and the required outputs, of which the parts that every pair goes through stand alone in the
table: an instruction belongs to what the kernel's own function calls there, whatever was inlined into that. The
code is straight there, so that the counts are what a wave issues for its pairs, but for branches not taken.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import machine

CARDS = ("gfx908", "gfx90a", "gfx942")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = "src/align/backend_hip.hip"

KERNEL = re.compile(r"run<tokenyard::align::(.+)>\(")
PLAIN = re.compile(r"(Registers|Grid)<PlainIds\b|<PlainIds, false\b")

# What clang says of a kernel: our names for it.
RESOURCES = {
    "SGPRs": "sgprs",
    "VGPRs": "vgprs",
    "AGPRs": "agprs",
    "ScratchSize [bytes/lane]": "scratch_bytes",
    "Occupancy [waves/SIMD]": "waves_per_simd",
    "SGPRs Spill": "sgprs_spilled",
    "VGPRs Spill": "vgprs_spilled",
    "LDS Size [bytes/block]": "lds_bytes",
}
REMARK = re.compile(r"remark: +(.+?): (\S+) \[-Rpass-analysis=kernel-resource-usage\]")

# The first prefix that an instruction has.
KINDS = (
    ("control", ("s_branch", "s_cbranch", "s_waitcnt", "s_barrier", "s_nop", "s_endpgm", "s_sleep")),
    ("scalar_memory", ("s_load", "s_buffer", "s_memtime", "s_dcache")),
    ("salu", ("s_",)),
    ("valu", ("v_",)),
    ("lds", ("ds_",)),
    ("vmem", ("global_", "flat_", "buffer_", "scratch_")),
)

# The parts of a kernel that each pair goes through, by what its function calls there.
COUNT = {"Everywhere": ("resolve", "add"), "Tile": ("count",), "Grid": ("count_chunk",)}
RANK = {"Everywhere": ("Own", "count_own", "place"), "Tile": ("rank",), "Grid": ("sort",)}


def kind(mnemonic):
    for name, prefixes in KINDS:
        if mnemonic.startswith(prefixes):
            return name
    sys.exit(f"{mnemonic}: of no kind that is known, expected one of {', '.join(name for name, _ in KINDS)}")


def demangled(names):
    said = subprocess.run(["llvm-cxxfilt-19"], input="\n".join(names), capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


def short(name):
    """ "Tile<PlainIds, false, 256, …>" of a kernel's demangled name; None of anything else."""
    match = KERNEL.search(name)
    return match[1].replace("tokenyard::align::", "").strip() if match else None


def resources(remarks):
    """{mangled name: {our name: number}}"""
    found, current = {}, None
    for line in remarks.splitlines():
        match = REMARK.search(line)
        if not match:
            continue
        if match[1] == "Function Name":
            current = found.setdefault(match[2], {})
        elif match[1] in RESOURCES:
            current[RESOURCES[match[1]]] = int(match[2])
    return found


def instructions(disassembly):
    """{mangled name: [(address, mnemonic)]}"""
    found, current = {}, None
    for line in disassembly.splitlines():
        if begin := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            current = found.setdefault(begin[1], [])
        elif one := re.match(r"\t(\w+).*// ([0-9A-F]+):", line):
            current.append((int(one[2], 16), one[1]))
    return found


def part_of(frames):
    """What the kernel's function calls at an instruction, given the functions inlined there, innermost first."""
    names = [frame["FunctionName"].split("<")[0] for frame in frames]
    own = len(names) - 2  # below the port's function
    if own < 0 or names[own] != "operator()":
        return "launch"
    return names[own - 1] if own > 0 else "itself"


def parts(code, binary):
    """{part: {kind: instructions}}"""
    said = subprocess.run(
        ["llvm-symbolizer-19", f"--obj={binary}", "--inlines", "--output-style=JSON"],
        input="\n".join(hex(address) for address, _ in code),
        capture_output=True,
        text=True,
        check=True,
    )
    counts = collections.defaultdict(collections.Counter)
    for (_, mnemonic), line in zip(code, said.stdout.splitlines()):
        counts[part_of(json.loads(line)["Symbol"])][kind(mnemonic)] += 1
    return {part: dict(counts[part]) for part in sorted(counts)}


def kernels(card, rocm, clang):
    with tempfile.NamedTemporaryFile(suffix=".o") as binary:
        headers = machine.first_line(clang, "-print-resource-dir")
        command = [clang, "-x", "hip", "-std=c++20", "-O3", "-gline-tables-only", "-isystem", headers]
        command += ["-Rpass-analysis=kernel-resource-usage", f"--rocm-path={rocm}", f"--offload-arch={card}"]
        command += ["--offload-device-only", "--no-gpu-bundle-output", "-mcode-object-version=5"]
        command += [f"-I{os.path.join(ROOT, folder)}" for folder in ("", "src", "include")]
        print("+", " ".join(command), flush=True)
        done = subprocess.run(
            [*command, os.path.join(ROOT, SOURCE), "-o", binary.name], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(done.stderr)
        needs = resources(done.stderr)
        names = dict(zip(needs, map(short, demangled(needs))))
        listing = ["llvm-objdump-19", "--disassemble", "--no-show-raw-insn", binary.name]
        code = instructions(subprocess.run(listing, capture_output=True, text=True, check=True).stdout)
        return [
            {"card": card, "kernel": names[name], **needs[name], "parts": parts(code[name], binary.name)}
            for name in sorted(needs, key=names.get)
            if names[name] and PLAIN.search(names[name])
        ]


def count(args):
    rows = [row for card in CARDS for row in kernels(card, args.rocm, args.clang)]
    context = {
        "compiler": machine.first_line(args.clang, "--version"),
        "commit": machine.commit(),
        "date": machine.now(),
        "command": machine.command_line(sys.argv),
    }
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump({"context": context, "results": rows}, file, indent=2)
        file.write("\n")


def hot(row, names):
    """ "VALU, SALU, LDS, VMEM" of these parts together."""
    chosen = names.get(row["kernel"].split("<")[0])
    if chosen is None:
        return ""
    if not any(part in row["parts"] for part in chosen):
        return ""  # one launch of two
    counts = collections.Counter()
    for part in chosen:
        counts.update(row["parts"].get(part, {}))
    return ", ".join(str(counts[name]) for name in ("valu", "salu", "lds", "vmem"))


def table(args):
    with open(args.results, encoding="utf-8") as file:
        recorded = json.load(file)
    print("| card | kernel | VGPRs (spilled) | SGPRs (spilled) | LDS, bytes | waves a SIMD | count | rank |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for row in recorded["results"]:
        if args.card not in (None, row["card"]):
            continue
        cells = [row["card"], row["kernel"].replace("PlainIds, ", "").replace("false, ", "")]
        cells += [f"{row[kind]} ({row[f'{kind}_spilled']})" for kind in ("vgprs", "sgprs")]
        cells += [row["lds_bytes"], row["waves_per_simd"]]
        print("|", " | ".join(map(str, [*cells, hot(row, COUNT), hot(row, RANK)])), "|")
    context = recorded["context"]
    print("\ncount, rank: instructions of a wave, VALU, SALU, LDS, VMEM.")
    print(f"{context['compiler']}; {context['date'][:10]}; commit {context['commit']}; `{context['command']}`")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    counting = commands.add_parser("count")
    counting.add_argument("--rocm", required=True, metavar="FOLDER")
    counting.add_argument("--clang", default="clang++-19")
    counting.add_argument("--out", required=True, metavar="FILE")
    counting.set_defaults(run=count)
    showing = commands.add_parser("table")
    showing.add_argument("results", metavar="FILE")
    showing.add_argument("--card", choices=CARDS, help="of this one alone")
    showing.set_defaults(run=table)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
