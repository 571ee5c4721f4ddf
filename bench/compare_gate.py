#!/usr/bin/env python3
"""Times gate beside the chain of PyTorch's operators that it replaces: needs the package, Triton and a CUDA card.

    PYTHONPATH=build/gpu/python bench/compare_gate.py --json bench/results/h200-gate-python.json

As `tokenyard bench gate`: 20 calls in a graph, each with logits of its own, median and spread of 60 replays.
Verified before: both choose and weigh alike, but for ties, which are left to 5 % of the tokens.
"""

import argparse
import sys

import torch

import machine
import resultfile
from baselines.torch_gate import CHOICES, Operator, TorchChain
from baselines.triton_align import launch_empty
from graph_timer import CALLS_IN_GRAPH, TIMER, timed

LARGEST_POOL = 1 << 30  # bytes of all inputs


def rotated_inputs(choice, tokens):
    """Normal logits for each call of a graph; of those that take much memory fewer, in turn."""
    torch.manual_seed(0)
    size = torch.empty((), dtype=choice.dtype).element_size() * tokens * choice.experts
    drawn = min(CALLS_IN_GRAPH, max(1, LARGEST_POOL // size))
    logits = [torch.randn(tokens, choice.experts, device="cuda").to(choice.dtype) for _ in range(drawn)]
    return [logits[i % drawn] for i in range(CALLS_IN_GRAPH)]


def difference(got, want, logits):
    """"" where nearly all tokens have the same logits chosen and weighed alike, else how many have not.

    PyTorch breaks ties in any way: of experts, whose logits are then the same, but also of groups, or of values
    that a bias or rounding makes equal.
    """
    (got_ids, got_weights), (want_ids, want_weights) = got, want
    values, expected = (logits.float().gather(1, ids.long()) for ids in (got_ids, want_ids))
    near = (got_weights - want_weights).abs().amax(-1) <= 1e-4 * want_weights.abs().amax(-1)  # no NaN is
    others = int((~near | (values != expected).any(-1)).sum())
    return f"{others} tokens have other experts or weights" if others > 0.05 * len(logits) else ""


def measure(choice, tokens):
    inputs = rotated_inputs(choice, tokens)
    bias = 0.1 * torch.randn(choice.experts, device="cuda") if choice.biased else None
    ours, chain = Operator(choice, bias), TorchChain(choice, bias)
    wrong = difference(ours(inputs[0]), chain(inputs[0]), inputs[0])
    if wrong:
        sys.exit(f"{choice.name}: {tokens} tokens: {wrong}")
    for implementation in (ours, chain):
        yield {
            "op": "gate",
            "impl": implementation.name,
            "preset": choice.name,
            "tokens": tokens,
            "top_k": choice.top_k,
            "experts": choice.experts,
            "dtype": str(choice.dtype).removeprefix("torch."),
            "distribution": "normal",
            "cold": False,
            **timed(implementation, inputs, launch_empty),
            "verified": True,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tokens",
        type=lambda text: [int(number) for number in text.split(",")],
        default=[1, 64, 1024, 4096, 16384, 65536],
        metavar="N,...",
    )
    parser.add_argument("--json", metavar="FILE", help="write context and results there")
    args = parser.parse_args()

    rows = []
    for choice in CHOICES:
        for tokens in args.tokens:
            for row in measure(choice, tokens):
                rows.append(row)
                print(
                    f"{row['tokens']:>7} {row['preset']:>20} {row['impl']:>10} {row['us_p20']:>8.2f} "
                    f"{row['us_p50']:>8.2f} {row['us_p80']:>8.2f} {row['floor_us']:>6.2f} {row['host_ns']:>8}",
                    flush=True,
                )
    if args.json:
        context = {
            "device": f"cuda: {torch.cuda.get_device_name()}",
            "driver": machine.ask_card("driver_version"),
            "sm_clock_mhz": machine.sm_clock_mhz(),
            "toolkit": f"torch {torch.__version__}, CUDA {torch.version.cuda}",
            "commit": machine.commit(),
            "date": machine.now(),
            "timer": TIMER,
            "command": machine.command_line(sys.argv),
        }
        resultfile.write(args.json, context, rows)


if __name__ == "__main__":
    main()
