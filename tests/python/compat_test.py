"""The shims, against what the engines document of their functions."""

import numpy as np
import pytest
import torch

import oracle
from tokenyard.compat import sglang, vllm
from tokenyard.compat.vllm import custom_ops


def blocks(ids, experts, block, names=None):
    """[(expert, pairs)] in the order of experts; names gives the experts' ids where they are not their
    numbers."""
    found = []
    for expert in range(experts):
        pairs = np.flatnonzero(ids.ravel() == expert).tolist()
        name = expert if names is None else names[expert]
        found += [(name, pairs[first : first + block]) for first in range(0, len(pairs), block)]
    return found


def expect_blocks(want, numel, block, sorted_ids, expert_ids, num_padded, tail=-1):
    """All of the buffers: an expert's pairs, padding, and what stands beyond the last used block."""
    assert num_padded.tolist() == [len(want) * block]
    order = [pair for _, pairs in want for pair in pairs + [numel] * (block - len(pairs))]
    assert sorted_ids.tolist() == order + [numel] * (sorted_ids.numel() - len(order))
    experts = [expert for expert, _ in want]
    assert expert_ids.tolist() == experts + [tail] * (expert_ids.numel() - len(experts))


def buffers(device, *sizes):
    return [torch.full((size,), -77, dtype=torch.int32, device=device) for size in sizes]


INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint32]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_vllm_custom_op_takes_ids_of_any_width(device, dtype):
    ids = torch.randint(0, 120, (30, 4)).to(dtype)
    slots = 120 + 100 * 7
    outputs = buffers(device, slots, -(-slots // 8) + 3, 1)
    custom_ops.moe_align_block_size(ids.to(device), 100, 8, *outputs)
    expect_blocks(blocks(ids.numpy(), 100, 8), 120, 8, *outputs)


def test_vllm_custom_op_maps_experts(device):
    ids = torch.randint(-3, 12, (50, 2), dtype=torch.int32)
    expert_map = torch.tensor([-1, 3, -1, 0, 1, -1, -1, 2], dtype=torch.int32)
    outputs = buffers(device, 100 + 8 * 3, 31, 1)
    custom_ops.moe_align_block_size(ids.to(device), 8, 4, *outputs, expert_map.to(device))
    local = np.array([expert_map[i].item() if 0 <= i < 8 else -1 for i in ids.flatten().tolist()])
    expect_blocks(blocks(local, 8, 4), 100, 4, *outputs)


@pytest.mark.parametrize(
    "tokens,pad,slots", [(50, False, 100 + 8 * 2), (50, True, 117), (2, False, 12), (2, True, 12)]
)
def test_vllm_sizes(device, tokens, pad, slots):
    ids = torch.randint(0, 8, (tokens, 2), device=device)
    sorted_ids, expert_ids, num_padded = vllm.moe_align_block_size(ids, 3, 8, pad_sorted_ids=pad)
    assert (sorted_ids.numel(), expert_ids.numel()) == (slots, -(-slots // 3))
    expect_blocks(blocks(ids.cpu().numpy(), 8, 3), 2 * tokens, 3, sorted_ids, expert_ids, num_padded)


@pytest.mark.parametrize("ignore", [False, True])
def test_vllm_maps_before_or_after(device, ignore):
    ids = torch.randint(0, 8, (50, 2))
    expert_map = torch.tensor([-1, 3, -1, 0, 1, -1, -1, 2], dtype=torch.int32)
    outputs = vllm.moe_align_block_size(
        ids.to(device), 4, 8, expert_map.to(device), ignore_invalid_experts=ignore
    )
    if ignore:
        expect_blocks(blocks(expert_map[ids].numpy(), 8, 4), 100, 4, *outputs)
    else:  # the tail is looked up, too
        expect_blocks(blocks(ids.numpy(), 8, 4, expert_map.tolist()), 100, 4, *outputs, tail=2)


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("ids_dtype", [torch.int32, torch.int64, torch.uint32], ids=str)
@pytest.mark.parametrize("function,score", [(vllm.topk_softmax, "softmax"), (vllm.topk_sigmoid, "sigmoid")])
def test_vllm_topk(device, function, score, ids_dtype, renormalize):
    logits = torch.randn(20, 64, dtype=torch.bfloat16)
    bias = torch.randint(-3, 3, (64,)) / 4 if ids_dtype == torch.int32 else None
    weights = torch.empty(20, 6, device=device)
    ids = torch.empty(20, 6, device=device, dtype=ids_dtype)
    indices = torch.empty(20, 6, device=device, dtype=torch.int32)
    function(weights, ids, indices, logits.to(device), renormalize, None if bias is None else bias.to(device))
    mode = "renormalized" if renormalize else "raw"
    want_ids, want_weights = oracle.gate(
        logits.double().numpy(), 6, None if bias is None else bias.double().numpy(), score, mode
    )
    np.testing.assert_array_equal(ids.cpu().to(torch.int64).numpy(), want_ids)
    np.testing.assert_allclose(weights.cpu().numpy(), want_weights, rtol=1e-5)
    assert indices.tolist() == [[k * 20 + t for k in range(6)] for t in range(20)]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("score", ["softmax", "sigmoid"])
def test_vllm_grouped_topk(device, score, biased):
    logits = torch.randn(20, 64)
    bias = torch.randint(-3, 3, (64,)) / 4 if biased else None
    weights, ids = vllm.grouped_topk(
        torch.empty(20, 1, device=device),
        logits.to(device),
        topk=6,
        renormalize=True,
        num_expert_group=8,
        topk_group=3,
        scoring_func=score,
        routed_scaling_factor=2.5,
        e_score_correction_bias=None if bias is None else bias.to(device),
    )
    want_ids, want_weights = oracle.gate(
        logits.double().numpy(),
        6,
        None if bias is None else bias.double().numpy(),
        score,
        "renormalized",
        (8, 3, "top2" if biased else "max"),
        scale=2.5,
    )
    assert (weights.dtype, ids.dtype) == (torch.float32, torch.int32)
    np.testing.assert_array_equal(ids.cpu().numpy(), want_ids)
    np.testing.assert_allclose(weights.cpu().numpy(), want_weights, rtol=1e-5)


def test_vllm_grouped_topk_wants_one_batch():
    with pytest.raises(
        ValueError, match="grouped_topk: hidden_states has 3 tokens, expected those of gating_output, 4"
    ):
        vllm.grouped_topk(torch.empty(3, 1), torch.empty(4, 8), 2, True)


@pytest.mark.parametrize("ignore", [False, True])
@pytest.mark.parametrize("tokens", [3, 60])
def test_sglang_align_has_a_bucket_for_no_expert(device, tokens, ignore):
    buckets, block = 9, 4  # 8 experts and one
    ids = torch.randint(-1, 8, (tokens, 2), dtype=torch.int32)
    numel = ids.numel()
    slots = numel * block if numel < buckets else numel + buckets * (block - 1)
    outputs = buffers(device, slots, -(-slots // block), 1)
    cumsum = torch.zeros(buckets + 1, dtype=torch.int32, device=device)
    sglang.moe_align_block_size(ids.to(device), buckets, block, *outputs, cumsum, True, ignore)
    want = blocks(ids.numpy() + 1, buckets, block, range(-1, 8))
    if ignore:
        want = [(expert, pairs) for expert, pairs in want if expert >= 0]
    expect_blocks(want, numel, block, *outputs)


def test_sglang_align_is_one_kernel(cuda):
    buckets, block = 257, 128
    ids = torch.randint(-1, 256, (16, 8), dtype=torch.int32, device=cuda)
    outputs = buffers(cuda, 128 * block, 128, 1)

    def call():
        sglang.moe_align_block_size(ids, buckets, block, *outputs, None, True)
        torch.cuda.synchronize()

    call()  # loads it
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
    kernels = [
        event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA
    ]
    assert len(kernels) == 1 and "tokenyard" in kernels[0]


@pytest.mark.parametrize("softcapping", [0.0, 2.0])
@pytest.mark.parametrize("biased", [False, True])
def test_sglang_topk_softmax(device, biased, softcapping):
    logits = torch.randn(20, 64)
    bias = torch.randn(64) if biased else None
    weights = torch.empty(20, 6, device=device)
    ids = torch.empty(20, 6, device=device, dtype=torch.int32)
    sglang.topk_softmax(
        weights, ids, logits.to(device), True, softcapping, None if bias is None else bias.to(device)
    )
    x = logits.double().numpy()
    if softcapping:
        x = softcapping * np.tanh(x / softcapping)
    if biased:
        x = x + bias.double().numpy()
    want_ids, want_weights = oracle.gate(x, 6, weight_mode="renormalized")
    np.testing.assert_array_equal(ids.cpu().numpy(), want_ids)
    np.testing.assert_allclose(weights.cpu().numpy(), want_weights, rtol=1e-5)


def test_sglang_topk_softmax_of_older_versions(device):
    logits = torch.randn(20, 64, device=device)
    new, old = (
        [torch.empty(20, 6, device=device), torch.empty(20, 6, device=device, dtype=torch.int32)]
        for _ in "ab"
    )
    sglang.topk_softmax(*new, logits, True)
    sglang.topk_softmax(*old, torch.empty_like(old[1]), logits, True)
    assert torch.equal(new[0], old[0]) and torch.equal(new[1], old[1])
    sglang.topk_softmax(*old, torch.empty_like(old[1]), logits)
    assert (old[0].sum(1) < 1).all()


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("on_output", [False, True])
@pytest.mark.parametrize("shared", [0, 2])
def test_sglang_fused_gate(device, shared, on_output, renormalize):
    logits = torch.randn(20, 64)
    bias = torch.randint(-3, 3, (64,)) / 4
    factor = 2.5
    weights, ids = sglang.moe_fused_gate(
        logits.to(device),
        bias.to(device),
        8,
        4,
        6 + shared,
        renormalize,
        "sigmoid",
        shared,
        factor,
        on_output,
    )
    want_ids, routed = oracle.gate(
        logits.double().numpy(), 6, bias.double().numpy(), "sigmoid", "raw", (8, 4, "top2")
    )
    total = routed.sum(axis=1, keepdims=True)
    want = np.concatenate([routed, np.repeat(total / factor, shared, axis=1)], axis=1)
    want *= (1 / total if renormalize else 1) * (factor if on_output else 1)
    np.testing.assert_array_equal(ids[:, :6].cpu().numpy(), want_ids)
    assert ids[:, 6:].tolist() == [[64 + i for i in range(shared)]] * 20
    np.testing.assert_allclose(weights.cpu().numpy(), want, rtol=1e-5)


def test_sglang_fused_gate_needs_the_factor_that_it_divides_by():
    with pytest.raises(
        ValueError, match="moe_fused_gate: routed_scaling_factor is 0, expected the model's factor"
    ):
        sglang.moe_fused_gate(torch.randn(4, 8), None, 2, 1, 3, num_fused_shared_experts=1)
