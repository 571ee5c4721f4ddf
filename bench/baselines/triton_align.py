"""align in Triton, in the four stages that engines began with (SGLang's and vLLM's moe_align_block_size_stage1
to 4, and the article's starting point): a program an expert, each with a chunk of the pairs.

  1  each program counts its chunk into its row of a table [programs + 1, experts]
  2  each program sums a column up: what the programs before have of its expert
  3  one program aligns the totals and sums them up
  4  each program writes its expert's blocks and places the pairs of its chunk

Better than the published stages, which take pair after pair and row after row: each step is one vector.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def count(ids, table, pairs, experts, CHUNK: tl.constexpr):
    program = tl.program_id(0)
    pair = program * CHUNK + tl.arange(0, CHUNK)
    inside = pair < pairs
    expert = tl.load(ids + pair, mask=inside, other=0)
    tl.atomic_add(table + (program + 1) * experts + expert, 1, mask=inside)


@triton.jit
def sum_up_columns(table, experts, ROWS: tl.constexpr):
    row = tl.arange(0, ROWS)
    cells = table + row * experts + tl.program_id(0)
    inside = row <= experts
    tl.store(cells, tl.cumsum(tl.load(cells, mask=inside, other=0)), mask=inside)


@triton.jit
def align_totals(table, offsets, num_padded, experts, block, EXPERTS: tl.constexpr):
    expert = tl.arange(0, EXPERTS)
    inside = expert < experts
    total = tl.load(table + experts * experts + expert, mask=inside, other=0)
    ends = tl.cumsum((total + block - 1) // block * block)
    tl.store(offsets + 1 + expert, ends, mask=inside)
    tl.store(num_padded, tl.max(ends))


@triton.jit
def place(ids, table, offsets, sorted_pair_ids, block_expert, pairs, experts, block, CHUNK: tl.constexpr):
    program = tl.program_id(0)
    lanes = tl.arange(0, 128)
    end = tl.load(offsets + program + 1) // block
    for first in range(tl.load(offsets + program) // block, end, 128):
        tl.store(block_expert + first + lanes, program, mask=first + lanes < end)
    pair = program * CHUNK + tl.arange(0, CHUNK)
    inside = pair < pairs
    expert = tl.load(ids + pair, mask=inside, other=0)
    rank = tl.atomic_add(table + program * experts + expert, 1, mask=inside)
    slot = tl.load(offsets + expert, mask=inside, other=0) + rank
    tl.store(sorted_pair_ids + slot, pair, mask=inside)


@triton.jit
def empty():
    pass


def launch_empty(_):
    empty[(1,)]()


class TritonStages:
    name = "triton_stages"
    order = "any"
    padding_written = True

    def __init__(self, shape, out):
        self.shape, self.out = shape, out
        device = out.num_padded.device
        self.table = torch.empty(shape.experts + 1, shape.experts, dtype=torch.int32, device=device)
        self.offsets = torch.zeros(shape.experts + 1, dtype=torch.int32, device=device)
        self.chunk = max(triton.next_power_of_2(triton.cdiv(shape.pairs, shape.experts)), 16)

    def __call__(self, ids):
        shape, out, table, offsets = self.shape, self.out, self.table, self.offsets
        programs = (shape.experts,)
        out.sorted_pair_ids.fill_(shape.pairs)
        table.zero_()
        count[programs](ids, table, shape.pairs, shape.experts, CHUNK=self.chunk)
        sum_up_columns[programs](table, shape.experts, ROWS=triton.next_power_of_2(shape.experts + 1))
        align_totals[(1,)](
            table,
            offsets,
            out.num_padded,
            shape.experts,
            shape.block,
            EXPERTS=triton.next_power_of_2(shape.experts),
        )
        place[programs](
            ids,
            table,
            offsets,
            out.sorted_pair_ids,
            out.block_expert,
            shape.pairs,
            shape.experts,
            shape.block,
            CHUNK=self.chunk,
        )
