"""align in PyTorch, and what Python packages bring where they are installed: this library's and engines'.

TorchSort is what one writes without a kernel of one's own: a stable sort, each expert's bounds by a search in
the sorted ids, a padded scatter. No step reads a count back, so that it can be captured in a graph.
"""

import importlib
import importlib.util

import torch


class TorchSort:
    name = "torch_sort"
    order = "stable"
    padding_written = True

    def __init__(self, shape, out):
        self.shape, self.out = shape, out
        device = out.sorted_pair_ids.device
        self.experts = torch.arange(shape.experts + 1, dtype=torch.int16, device=device)
        self.indices = torch.arange(shape.pairs, device=device)
        self.first_slots = torch.arange(0, shape.capacity, shape.block, device=device)

    def __call__(self, ids):
        shape, out = self.shape, self.out
        keys, pairs = torch.sort(ids.reshape(-1).to(torch.int16), stable=True)  # fewer bits, fewer passes
        first = torch.searchsorted(keys, self.experts)
        padded = (first.diff() + (shape.block - 1)) // shape.block * shape.block
        ends = padded.cumsum(0)
        shift = ends - padded - first[:-1]  # from an expert's place among the sorted to its first slot
        slots = self.indices + shift.index_select(0, keys.to(torch.int32))
        out.sorted_pair_ids.fill_(shape.pairs)
        out.sorted_pair_ids.scatter_(0, slots, pairs.to(torch.int32))
        experts = torch.searchsorted(ends, self.first_slots, right=True)
        out.block_expert.copy_(torch.where(experts < shape.experts, experts, -1))
        out.num_padded.copy_(ends[-1:])


class Operator:
    """This library again, as its operator of PyTorch: what that costs on the host, and on the device the memset
    of a call's own workspace."""

    name = "tokenyard_torch"
    order = "stable"
    padding_written = True

    def __init__(self, shape, out):
        importlib.import_module("tokenyard.ops")
        self.align = torch.ops.tokenyard.align_out.default
        self.shape, self.out = shape, out

    def __call__(self, ids):
        self.align(
            ids,
            self.shape.experts,
            self.shape.block,
            sorted_pair_ids=self.out.sorted_pair_ids,
            block_expert=self.out.block_expert,
            num_padded=self.out.num_padded,
        )


class SglKernel:
    """SGLang's kernel as its engine calls it: bucket 0 is for id -1, so there is one more than experts."""

    name = "sgl_kernel"
    order = "any"
    padding_written = True

    def __init__(self, shape, out):
        self.align = importlib.import_module("sgl_kernel").moe_align_block_size
        self.shape, self.out = shape, out
        self.cumsum = torch.empty(shape.experts + 2, dtype=torch.int32, device=out.num_padded.device)

    def __call__(self, ids):
        self.align(
            ids,
            self.shape.experts + 1,
            self.shape.block,
            self.out.sorted_pair_ids,
            self.out.block_expert,
            self.out.num_padded,
            self.cumsum,
            True,
        )


class Vllm:
    name = "vllm"
    order = "any"
    padding_written = True

    def __init__(self, shape, out):
        self.align = importlib.import_module("vllm._custom_ops").moe_align_block_size
        self.shape, self.out = shape, out

    def __call__(self, ids):
        self.align(
            ids,
            self.shape.experts,
            self.shape.block,
            self.out.sorted_pair_ids,
            self.out.block_expert,
            self.out.num_padded,
        )


def installed():
    modules = ((Operator, "tokenyard"), (SglKernel, "sgl_kernel"), (Vllm, "vllm"))
    return [implementation for implementation, module in modules if is_installed(module)]


def is_installed(module):
    return importlib.util.find_spec(module) is not None
