"""align with numpy: a stable argsort of the ids, then a padded scatter. Prints one line of JSON.

The same outputs as ty_align() from the same kind of input, for comparison with the CPU backend:
    python3 numpy_align.py --tokens 16384 --top-k 8 --experts 256 --block 128
"""

import argparse
import json
import time

import numpy as np


def align(ids, experts, block, capacity):
    """ids [tokens, top_k] int32, any value; returns every output of align, by name."""
    flat = ids.ravel()
    pairs = flat.size
    key = np.where((flat >= 0) & (flat < experts), flat, experts)  # dropped pairs sort last
    order = np.argsort(key, kind="stable")
    counts = np.bincount(key, minlength=experts + 1)
    num_dropped = counts[experts]
    counts = counts[:experts]
    blocks = -(-counts // block)
    offsets = np.concatenate(([0], np.cumsum(blocks * block)))
    first = np.cumsum(counts) - counts

    order = order[: pairs - num_dropped]
    expert = key[order]
    slot = np.arange(order.size) - first[expert] + offsets[expert]
    sorted_pair_ids = np.full(capacity, pairs, np.int32)
    sorted_pair_ids[slot] = order
    inverse = np.full(pairs, -1, np.int32)
    inverse[order] = slot

    num_blocks = -(-capacity // block)
    block_expert = np.full(num_blocks, -1, np.int32)
    block_expert[: blocks.sum()] = np.repeat(np.arange(experts), blocks)
    block_rows = np.bincount(slot // block, minlength=num_blocks).astype(np.int32)
    return {
        "sorted_pair_ids": sorted_pair_ids,
        "block_expert": block_expert,
        "num_padded": int(offsets[-1]),
        "counts": counts.astype(np.int32),
        "offsets": offsets.astype(np.int32),
        "inverse": inverse,
        "block_rows": block_rows,
        "num_dropped": int(num_dropped),
    }


def capacity(pairs, experts, block):
    return min(pairs * block, -(-(pairs + experts * (block - 1)) // block) * block)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--top-k", type=int, default=8)
    parser.add_argument("--experts", type=int, default=256)
    parser.add_argument("--block", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    rng = np.random.default_rng(args.seed)
    scores = rng.random((args.tokens, args.experts), dtype=np.float32)
    ids = np.argpartition(-scores, args.top_k - 1, axis=1)[:, : args.top_k].astype(np.int32)
    slots = capacity(ids.size, args.experts, args.block)

    times = []
    for _ in range(args.repeats):
        start = time.perf_counter()
        align(ids, args.experts, args.block, slots)
        times.append((time.perf_counter() - start) * 1e6)
    p20, p50, p80 = np.percentile(times, [20, 50, 80])
    print(
        json.dumps(
            {
                "op": "align",
                "impl": "numpy-argsort",
                "path": "numpy",
                "tokens": args.tokens,
                "top_k": args.top_k,
                "experts": args.experts,
                "block": args.block,
                "dtype": "int32",
                "distribution": "uniform",
                "order": "stable",
                "padding_written": True,
                "us_p20": round(p20, 1),
                "us_p50": round(p50, 1),
                "us_p80": round(p80, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
