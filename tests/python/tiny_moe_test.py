"""examples/tiny_moe.py: its parts, and a run of two steps."""

import importlib.util
import pathlib
import re

import numpy as np
import pytest
import torch

import tokenyard
from tokenyard import routings

pytest.importorskip("tqdm")
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("tiny_moe", ROOT / "examples/tiny_moe.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_experts_are_the_sum_over_those_chosen(example):
    torch.manual_seed(0)
    experts = example.Experts()
    x = torch.randn(20, example.WIDTH)
    ids = torch.rand(20, example.EXPERTS).topk(example.TOP_K).indices
    weights = torch.rand(20, example.TOP_K, requires_grad=True)

    value, gate = torch.einsum("ti,eio->teo", x, experts.up).chunk(2, dim=2)
    each = torch.einsum("teh,eho->teo", value * torch.nn.functional.silu(gate), experts.down)
    chosen = each.gather(1, ids[:, :, None].expand(-1, -1, example.WIDTH))
    want = (chosen * weights[:, :, None]).sum(1)

    got = experts(x, ids, weights)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    parameters = (weights, experts.up, experts.down)
    grad = torch.randn_like(want)
    torch.testing.assert_close(
        torch.autograd.grad(got, parameters, grad),
        torch.autograd.grad(want, parameters, grad),
        rtol=1e-4,
        atol=1e-4,
    )


def test_router_learns_and_balances(example):
    torch.manual_seed(0)
    router = example.Router()
    x = torch.randn(50, example.WIDTH)
    ids, weights = router(x)
    torch.testing.assert_close(weights.sum(1), torch.ones(50))
    weights[:, 0].sum().backward()
    assert router.logits.weight.grad.abs().max() > 0
    np.testing.assert_array_equal(router.counts, np.bincount(ids.flatten(), minlength=example.EXPERTS))
    before = example.busiest(router)
    for _ in range(30):
        tokenyard.balance_step(router.bias, router.counts, 0.01)
        router(x)
    assert example.busiest(router) < 0.75 * before


def test_run(example, tmp_path, monkeypatch, capsys):
    command = ["tiny_moe", "--steps", "2", "--out", str(tmp_path), "--text"]
    command += map(str, (ROOT / "python/tokenyard").glob("*.py"))
    monkeypatch.setattr("sys.argv", command)
    example.main()
    losses = re.findall(r"^  step +\d+  (\d\.\d+) ", capsys.readouterr().out, re.MULTILINE)
    assert len(losses) == 2 and float(losses[1]) < float(losses[0])
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [
        f"step-{step}-layer-{layer}.npy" for step in (0, 2) for layer in range(example.LAYERS)
    ]
    for file in files:
        ids = routings.read(file)
        assert ids.shape == (example.BATCH * example.CONTEXT, example.TOP_K) and ids.max() < example.EXPERTS
        assert (np.diff(np.sort(ids, axis=1), axis=1) > 0).all()  # a token's experts differ
