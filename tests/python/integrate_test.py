"""The plugins of docs/integrate-*.md, loaded as the engines do it. The engines are stand-ins: modules whose
kernels fail unless they were replaced, and a layer that calls them as the engine's does."""

import enum
import importlib.metadata
import pathlib
import re
import sys
import types

import pytest
import torch

EXPERTS, TOP_K, BLOCK, WIDTH = 16, 4, 8, 12


def blocks_of(document, language):
    text = (pathlib.Path(__file__).parents[2] / "docs" / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def load_plugin(document, group, folder, monkeypatch):
    """What the document's entry point names, imported from the document's own file."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads(blocks_of(document, "toml")[0])["project"]
    ((name, value),) = project["entry-points"][group].items()
    source = blocks_of(document, "py")[0]
    (folder / re.match(r"# (\S+)\n", source)[1]).write_text(source)
    monkeypatch.syspath_prepend(folder)
    return importlib.metadata.EntryPoint(name, value, group).load()


def add_module(monkeypatch, name, *kernels, **values):
    """An importable module; its kernels fail."""

    def fail(*args, **options):
        raise AssertionError("the engine's own kernel was called")

    module = types.ModuleType(name)
    vars(module).update({kernel: fail for kernel in kernels}, **values, __path__=[])
    monkeypatch.setitem(sys.modules, name, module)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module


class Layer:
    """Each expert a matrix: what a token's experts make of it, weighted."""

    def __init__(self, device, tokens=50):
        self.x = torch.randn(tokens, WIDTH, device=device)
        self.logits = torch.randn(tokens, EXPERTS, device=device)
        self.experts = torch.randn(EXPERTS, WIDTH, WIDTH, device=device)
        self.weights = torch.empty(tokens, TOP_K, device=device)
        self.ids = torch.empty(tokens, TOP_K, device=device, dtype=torch.int32)

    def ints(self, *sizes):
        return [torch.empty(size, device=self.x.device, dtype=torch.int32) for size in sizes]

    def by_blocks(self, sorted_ids, expert_ids, num_padded):
        """As a kernel of the engine does it: a block is one expert's, and ids from numel on are padding."""
        out = torch.zeros_like(self.x)
        for first in range(0, int(num_padded), BLOCK):
            expert = int(expert_ids[first // BLOCK])
            pairs = sorted_ids[first : first + BLOCK].long()
            pairs = pairs[pairs < self.ids.numel()]
            tokens = pairs // TOP_K
            if expert >= 0:
                product = self.x[tokens] @ self.experts[expert]
                out.index_add_(0, tokens, product * self.weights.flatten()[pairs, None])
        return out

    def by_definition(self, masked=()):
        scores = self.logits.softmax(dim=1)
        chosen = scores.topk(TOP_K)
        weights = torch.zeros_like(scores).scatter(1, chosen.indices, chosen.values)
        weights /= weights.sum(dim=1, keepdim=True)
        weights[list(masked)] = 0
        return torch.einsum("te,ti,eio->to", weights, self.x, self.experts)


def test_vllm(device, tmp_path, monkeypatch):
    add_module(monkeypatch, "vllm")
    ops = add_module(monkeypatch, "vllm._custom_ops", "moe_align_block_size", "topk_softmax", "topk_sigmoid")
    load_plugin("integrate-vllm.md", "vllm.general_plugins", tmp_path, monkeypatch)()

    layer = Layer(device)
    ops.topk_softmax(layer.weights, layer.ids, torch.empty_like(layer.ids), layer.logits, True)
    slots = layer.ids.numel() + EXPERTS * (BLOCK - 1)
    order = layer.ints(slots, -(-slots // BLOCK), 1)
    ops.moe_align_block_size(layer.ids, EXPERTS, BLOCK, *order)
    torch.testing.assert_close(layer.by_blocks(*order), layer.by_definition())


class HookType(enum.Enum):
    REPLACE = "replace"


class HookRegistry:
    @staticmethod
    def register(target, hook, hook_type):
        assert hook_type is HookType.REPLACE
        module, _, name = target.rpartition(".")
        assert hasattr(sys.modules[module], name)
        setattr(sys.modules[module], name, hook)


def sglang_layer(device):
    layer = Layer(device)
    kernels = sys.modules["sgl_kernel"]
    kernels.topk_softmax(layer.weights, layer.ids, layer.logits, True)
    layer.ids[40:] = -1  # as the padding of a batch to the size of a graph
    slots = layer.ids.numel() + (EXPERTS + 1) * (BLOCK - 1)
    order = layer.ints(slots, -(-slots // BLOCK), 1)
    kernels.moe_align_block_size(layer.ids, EXPERTS + 1, BLOCK, *order, *layer.ints(EXPERTS + 2), True)
    torch.testing.assert_close(layer.by_blocks(*order), layer.by_definition(range(40, 50)))


SGLANG_KERNELS = ("moe_align_block_size", "topk_softmax", "moe_fused_gate")


def test_sglang(device, tmp_path, monkeypatch):
    add_module(monkeypatch, "sgl_kernel", *SGLANG_KERNELS)
    for name in ("sglang", "sglang.srt", "sglang.srt.plugins"):
        add_module(monkeypatch, name)
    add_module(monkeypatch, "sglang.srt.plugins.hook_registry", HookRegistry=HookRegistry, HookType=HookType)
    load_plugin("integrate-sglang.md", "sglang.srt.plugins", tmp_path, monkeypatch)()
    sglang_layer(device)


def test_sglang_without_plugins(device, monkeypatch):
    add_module(monkeypatch, "sgl_kernel", *SGLANG_KERNELS)
    exec(blocks_of("integrate-sglang.md", "py")[1], {})
    sglang_layer(device)
