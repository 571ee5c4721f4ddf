#!/usr/bin/env python3
"""Times on the host what a call of a PyTorch operator costs, beside one of PyTorch's own: needs the package.

    PYTHONPATH=build/gpu/python bench/operators.py --json bench/results/h200-operators.json

Median and spread of queues of 100 calls that the device does not hold up: 64 tokens on a card. On a CPU the
work itself is in the number.
"""

import argparse
import sys
import time

import numpy as np
import torch

import machine
import resultfile
import tokenyard

CALLS = 100
QUEUES = 30
WARM_UPS = 5
MODES = {"inference": torch.inference_mode, "no_grad": torch.no_grad, "grad": torch.enable_grad}
PRESET = {"score": "sigmoid", "weight_mode": "renormalized", "epsilon": 1e-20, "scale": 2.5}  # DeepSeek-V3's


def calls(device):
    """By name. Those of gradients are the whole forward and backward."""
    logits = torch.randn(64, 256, device=device, dtype=torch.bfloat16)
    trained = logits.clone().requires_grad_()
    bias = torch.zeros(256, device=device)
    chosen = tokenyard.gate(logits, 8, bias=bias, counts=True, **PRESET)
    ones = torch.ones_like(chosen.weights)
    narrow = ones.bfloat16()
    ops = torch.ops.tokenyard
    every_mode = {
        "aten::add": lambda: torch.add(bias, bias),
        "aten::topk": lambda: torch.topk(logits, 8),
        "gate": lambda: tokenyard.gate(logits, 8, bias=bias, **PRESET),
        "align": lambda: tokenyard.align(chosen.ids, 256, 128),
        "route": lambda: tokenyard.route(logits, 8, 128, bias=bias, **PRESET),
        "gate_backward": lambda: ops.gate_backward(ones, logits, chosen.ids, 8, "sigmoid", "renormalized"),
        "router_loss": lambda: tokenyard.router_loss(logits, chosen.ids, balance_coefficient=0.1),
        "balance_step": lambda: tokenyard.balance_step(bias, chosen.counts),
        "load_statistics": lambda: tokenyard.load_statistics(chosen.counts),
    }
    with_gradient = {
        "aten::topk, backward": lambda: torch.topk(trained, 8).values.backward(narrow),
        "gate, backward": lambda: tokenyard.gate(trained, 8, bias=bias, **PRESET).weights.backward(ones),
    }
    return every_mode, with_gradient


def host_us(call, device):
    """µs a call, one for each queue."""
    samples = []
    for queue in range(WARM_UPS + QUEUES):
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        if queue >= WARM_UPS:
            samples.append((time.perf_counter_ns() - start) / CALLS / 1000)
        if device == "cuda":
            torch.cuda.synchronize()
    return samples


def measure(device):
    every_mode, with_gradient = calls(device)
    for mode, context in MODES.items():
        with context():
            for name, call in (every_mode if mode != "grad" else {**every_mode, **with_gradient}).items():
                p20, p50, p80 = np.percentile(host_us(call, device), [20, 50, 80]).round(2)
                yield {
                    "operator": name,
                    "mode": mode,
                    "host_us_p20": p20,
                    "host_us_p50": p50,
                    "host_us_p80": p80,
                }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--json", metavar="FILE", help="write context and results there")
    args = parser.parse_args()

    rows = []
    for row in measure(args.device):
        rows.append(row)
        print(
            f"{row['mode']:>9} {row['host_us_p20']:>7} {row['host_us_p50']:>7} {row['host_us_p80']:>7}  {row['operator']}"
        )
    if args.json:
        context = {
            "device": torch.cuda.get_device_name() if args.device == "cuda" else "cpu",
            "driver": machine.ask_card("driver_version"),
            "toolkit": f"torch {torch.__version__}, Python {sys.version.split()[0]}",
            "commit": machine.commit(),
            "date": machine.now(),
            "timer": f"the host's, {QUEUES} queues of {CALLS} calls",
            "command": machine.command_line(sys.argv),
        }
        resultfile.write(args.json, context, rows)


if __name__ == "__main__":
    main()
