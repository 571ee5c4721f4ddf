"""What speaks DLPack, into tensors of its own."""

import numpy as np
import pytest
import torch

import oracle
import tokenyard

pytest.importorskip("tvm_ffi")
dlpack = pytest.importorskip("tokenyard.dlpack")

NAMES = (
    "sorted_pair_ids",
    "block_expert",
    "num_padded",
    "counts",
    "offsets",
    "inverse",
    "block_rows",
    "num_dropped",
)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_aligns_numpy_arrays(dtype):
    ids = np.random.default_rng(1).integers(-1, 60, (50, 6)).astype(dtype)
    expert_map = np.arange(60, dtype=np.int32) // 2 - 1
    want = oracle.align(ids, 60, 16, expert_map, 29)
    outputs = {name: np.full(values.shape, -7, np.int32) for name, values in want.items()}
    dlpack.align(
        ids, 60, 16, *(outputs.pop(name) for name in NAMES[:3]), expert_map=expert_map, num_local_experts=29
    )
    outputs = {name: np.full(values.shape, -7, np.int32) for name, values in want.items()}
    dlpack.align(ids, 60, 16, **outputs, expert_map=expert_map, num_local_experts=29)
    for name in NAMES:
        np.testing.assert_array_equal(outputs[name], want[name], err_msg=name)


def test_chooses_from_numpy_arrays():
    logits = np.random.default_rng(2).standard_normal((20, 64)).astype(np.float32)
    bias = np.arange(64, dtype=np.float32) % 5 / 4
    ids, weights, counts = np.empty((20, 6), np.int64), np.empty((20, 6), np.float32), np.empty(64, np.int32)
    options = {"score": "sigmoid", "weight_mode": "renormalized", "scale": 2.5}
    dlpack.gate(
        logits,
        6,
        ids,
        weights,
        bias=bias,
        counts=counts,
        num_groups=8,
        kept_groups=4,
        group_score="top2",
        **options,
    )
    want_ids, want_weights = oracle.gate(
        logits.astype(float), 6, bias.astype(float), groups=(8, 4, "top2"), **options
    )
    np.testing.assert_array_equal(ids, want_ids)
    np.testing.assert_allclose(weights, want_weights, rtol=1e-5)
    np.testing.assert_array_equal(counts, np.bincount(ids.ravel(), minlength=64))


def test_trains_with_numpy_arrays():
    given = torch.randn(33, 16)
    logits = given.clone().requires_grad_()
    options = {"score": "sigmoid", "weight_mode": "renormalized", "epsilon": 1e-3, "scale": 2.5}
    chosen = tokenyard.gate(logits, 4, **options, counts=True)
    chosen.weights.backward(torch.ones(33, 4))
    got = np.empty((33, 16), np.float32)
    dlpack.gate_backward(np.ones((33, 4), np.float32), given.numpy(), chosen.ids.numpy(), 4, got, **options)
    np.testing.assert_array_equal(got, logits.grad.numpy())

    coefficients = {"balance_coefficient": 0.5, "z_coefficient": 0.25}
    logits.grad = None
    router = tokenyard.router_loss(logits, chosen.ids, **coefficients)
    router.loss.backward()
    losses, counts = np.empty(2, np.float32), np.empty((1, 16), np.int32)
    scratch = np.empty(2 * 3, np.float32)
    dlpack.router_loss(
        given.numpy(), losses, scratch, ids=chosen.ids.numpy(), counts=counts, logits_grad=got, **coefficients
    )
    np.testing.assert_array_equal(losses, [router.balance, router.z])
    np.testing.assert_array_equal(counts, router.counts.numpy())
    np.testing.assert_array_equal(got, logits.grad.numpy())

    bias, statistics, want = np.zeros(16, np.float32), np.empty(4, np.float32), torch.zeros(16)
    dlpack.balance(counts[0], rate=0.5, bias=bias, statistics=statistics)
    tokenyard.balance_step(want, chosen.counts, rate=0.5)
    np.testing.assert_array_equal(bias, want.numpy())
    np.testing.assert_array_equal(statistics, torch.stack(tokenyard.load_statistics(chosen.counts)).numpy())


def test_refuses_options_that_there_are_not():
    with pytest.raises(TypeError, match="gate: no option is called scores, expected one of bias, score, "):
        dlpack.gate(np.zeros((1, 2), np.float32), 1, np.zeros((1, 1), np.int32), None, scores="sigmoid")


@pytest.mark.parametrize("tokens", [10, 20000])
def test_takes_tensors_of_any_device(device, tokens):
    ids = torch.randint(0, 256, (tokens, 10), dtype=torch.int32, device=device)[:, 1:9]
    want = tokenyard.align(ids, 256, 64)
    got = [torch.full_like(tensor, -7) for tensor in want[:3]]
    dlpack.align(ids, 256, 64, *got)
    assert all(torch.equal(a, b) for a, b in zip(got, want))
    logits = torch.randn(tokens, 64, device=device).bfloat16()
    chosen = tokenyard.gate(logits, 4)
    ids, weights = torch.empty_like(chosen.ids), torch.empty_like(chosen.weights)
    dlpack.gate(logits, 4, ids, weights)
    assert torch.equal(ids, chosen.ids) and torch.equal(weights, chosen.weights)
    chosen, order = tokenyard.route(logits, 4, 64, num_shared_experts=1)
    want = [*chosen[:2], *order[:3]]
    got = [torch.zeros_like(tensor) for tensor in want]
    dlpack.route(logits, 4, 64, *got, num_shared_experts=1)
    assert all(torch.equal(a, b) for a, b in zip(got, want))
    with pytest.raises(ValueError, match="route: align: block_expert is of shape .*, expected"):
        dlpack.route(logits, 4, 32, *got, num_shared_experts=1)


def test_runs_on_the_stream_of_the_framework(cuda):
    early, late = (torch.full((3000, 8), expert, dtype=torch.int32, device=cuda) for expert in (1, 2))
    got = [tensor.clone() for tensor in tokenyard.align(early, 256, 64)[:3]]
    dlpack.align(early, 256, 64, *got)
    want = tokenyard.align(late, 256, 64)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(100_000_000)
        early.copy_(late)
        dlpack.align(early, 256, 64, *got)
    torch.cuda.synchronize()
    assert all(torch.equal(a, b) for a, b in zip(got, want))


@pytest.mark.parametrize(
    "ids,room,says",
    [
        (np.zeros((4, 2)), 8, "topk_ids is of type float64, expected int32 or int64"),
        (np.zeros((4, 2), np.int16), 8, "topk_ids is of type int8 or int16, expected int32"),
        (np.zeros(4, np.int32), 8, r"topk_ids is of shape \[4\], expected two dimensions"),
        (np.zeros((2, 4), np.int32).T, 8, r"topk_ids is of strides \[1, 4\], expected contiguous rows"),
        (np.zeros((4, 2), np.int32), 7, "capacity is 7, expected 8 to"),
    ],
)
def test_refuses_in_a_sentence(ids, room, says):
    outputs = [np.empty(size, np.int32) for size in (room, room, 1)]
    with pytest.raises(ValueError, match=f"align: {says}"):
        dlpack.align(ids, 4, 1, *outputs)
    with pytest.raises(ValueError, match=r"block_expert is of shape \[3\], expected 2 elements"):
        dlpack.align(
            np.zeros((2, 2), np.int32), 4, 2, np.empty(4, np.int32), np.empty(3, np.int32), outputs[2]
        )
