#!/usr/bin/env python3
"""Times align's baselines in Python beside this library, in one process: needs torch, Triton and a CUDA card.

    bench/compare.py --library build/gpu/lib/libtokenyard.so --json bench/results/h200-align-python.json

As `tokenyard bench align`: 20 calls in a graph, each with ids of its own, median and spread of 60 replays,
verified before and after; rows in the same form.
"""

import argparse
import dataclasses
import sys

import numpy as np
import torch
import triton

import machine
import resultfile
from baselines import numpy_align
from baselines.library_align import Library, LibraryAlign
from baselines.torch_align import TorchSort, installed
from baselines.triton_align import TritonStages, launch_empty
from graph_timer import CALLS_IN_GRAPH, TIMER, timed

LARGEST_POOL = 20480
POISON = np.int32(-286331154)  # 0xEEEEEEEE


@dataclasses.dataclass(frozen=True)
class Shape:
    tokens: int
    top_k: int
    experts: int
    block: int

    @property
    def pairs(self):
        return self.tokens * self.top_k

    @property
    def capacity(self):
        return numpy_align.capacity(self.pairs, self.experts, self.block)

    def __str__(self):
        return f"{self.tokens} tokens x {self.top_k} of {self.experts}, blocks of {self.block}"


class Outputs:
    def __init__(self, shape):
        def empty(size):
            return torch.empty(size, dtype=torch.int32, device="cuda")

        self.sorted_pair_ids = empty(shape.capacity)
        self.block_expert = empty(-(-shape.capacity // shape.block))
        self.num_padded = empty(1)

    def poison(self):
        for tensor in (self.sorted_pair_ids, self.block_expert, self.num_padded):
            tensor.fill_(int(POISON))


def rotated_inputs(shape, seed=0):
    """Uniform ids [tokens, top_k] for each call of a graph; many tokens begin elsewhere in one draw."""
    rng = np.random.default_rng(seed)
    tokens = max(shape.tokens, min(shape.tokens * CALLS_IN_GRAPH, LARGEST_POOL))
    scores = rng.random((tokens, shape.experts), dtype=np.float32)
    pool = np.argpartition(scores, shape.top_k - 1, axis=1)[:, : shape.top_k].astype(np.int32)
    firsts = [i * tokens // CALLS_IN_GRAPH for i in range(CALLS_IN_GRAPH)]
    return [np.take(pool, range(first, first + shape.tokens), axis=0, mode="wrap") for first in firsts]


def difference(implementation, shape, out, ids):
    """"" if the outputs are the reference's, else what differs first."""
    want = numpy_align.align(ids, shape.experts, shape.block, shape.capacity)
    num_padded = int(out.num_padded.item())
    if num_padded != want["num_padded"]:
        return f"num_padded is {num_padded}, expected {want['num_padded']}"
    used = num_padded // shape.block
    got = {
        "sorted_pair_ids": out.sorted_pair_ids.cpu().numpy(),
        "block_expert": out.block_expert.cpu().numpy()[:used],
    }
    if implementation.order != "stable":
        for first, count in zip(want["offsets"], want["counts"]):
            got["sorted_pair_ids"][first : first + count].sort()
    for name, values in got.items():
        wrong = np.flatnonzero(values != want[name][: values.size])
        if wrong.size > 0:
            at = wrong[0]
            return f"{name}[{at}] is {values[at]}, expected {want[name][at]}"
    return ""


def verify(implementation, shape, out, inputs, when):
    for host, device in inputs:
        out.poison()
        implementation(device)
        wrong = difference(implementation, shape, out, host)
        if wrong:
            sys.exit(f"{implementation.name}: wrong {when} the measurement of {shape}: {wrong}")


def measure(shape, library):
    hosts = rotated_inputs(shape)
    devices = [torch.from_numpy(ids).cuda() for ids in hosts]
    out = Outputs(shape)
    ours = LibraryAlign(library, shape, out)
    others = [make(shape, out) for make in (TritonStages, TorchSort, *installed())]
    for implementation in (ours, *others):
        inputs = list(zip(hosts, devices))
        verify(implementation, shape, out, inputs, "before")
        times = timed(implementation, devices, launch_empty)
        verify(implementation, shape, out, inputs, "after")
        yield {
            "op": "align",
            "impl": implementation.name,
            "path": implementation.path() if implementation is ours else None,
            **dataclasses.asdict(shape),
            "dtype": "int32",
            "distribution": "uniform",
            "order": implementation.order,
            "padding_written": implementation.padding_written,
            "cold": False,
            "linked": False,
            **times,
            "verified": True,
        }


def context(library):
    return {
        "device": f"cuda: {library.describe()}",
        "driver": machine.ask_card("driver_version"),
        "sm_clock_mhz": machine.sm_clock_mhz(),
        "toolkit": f"torch {torch.__version__}, triton {triton.__version__}, CUDA {torch.version.cuda}",
        "commit": machine.commit(),
        "date": machine.now(),
        "timer": TIMER,
        "command": machine.command_line(sys.argv),
    }


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, metavar="FILE", help="libtokenyard.so with CUDA")
    sizes = [1, 16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536]
    parser.add_argument("--tokens", type=numbers, default=sizes, metavar="N,...")
    parser.add_argument("--top-k", type=int, default=8)
    parser.add_argument("--experts", type=int, default=256)
    parser.add_argument("--block", type=int, default=128)
    parser.add_argument("--json", metavar="FILE", help="write context and results there")
    args = parser.parse_args()

    library = Library(args.library)
    rows = []
    for tokens in args.tokens:
        for row in measure(Shape(tokens, args.top_k, args.experts, args.block), library):
            rows.append(row)
            print(
                f"{row['tokens']:>7} {row['impl']:>14} {row['us_p20']:>8.2f} {row['us_p50']:>8.2f} "
                f"{row['us_p80']:>8.2f} {row['floor_us']:>6.2f} {row['host_ns']:>8}",
                flush=True,
            )
    if args.json:
        resultfile.write(args.json, context(library), rows)


if __name__ == "__main__":
    main()
