"""route on tensors: gate and then align, bit for bit."""

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

import tokenyard

tokenyard.ops  # registers torch.ops.tokenyard


def in_two(logits, top_k, block_size, *, expert_map=None, num_local_experts=None, details=False, **options):
    chosen = tokenyard.gate(logits, top_k, counts=details, **options)
    physical = options.get("num_physical_experts") or logits.size(1)
    return chosen, tokenyard.align(
        chosen.ids,
        physical + options.get("num_shared_experts", 0),
        block_size,
        expert_map=expert_map,
        num_local_experts=num_local_experts,
        details=details,
    )


def expect_same(got, want):
    for one, other in zip(got, want):
        for name, tensor, expected in zip(one._fields, one, other):
            assert (tensor is None) == (expected is None), name
            assert tensor is None or torch.equal(tensor, expected), name


@st.composite
def problems(draw):
    experts = draw(st.sampled_from([1, 8, 60, 64, 256, 384]))
    tokens = draw(st.sampled_from([0, 1, 3, 40, 64, 65, 700]))
    options = {"weight_mode": draw(st.sampled_from(["raw", "renormalized", "softmax_of_chosen"]))}
    if draw(st.booleans()):
        options.update(score="sigmoid", bias=torch.randn(experts) / 4)
    if draw(st.booleans()):
        options["num_shared_experts"] = draw(st.integers(1, 2))
    if draw(st.booleans()):
        options["ids_dtype"] = torch.int64
    if draw(st.booleans()):
        options["num_real_tokens"] = torch.tensor([tokens // 2], dtype=torch.int32)
    physical = experts
    if draw(st.booleans()):
        physical = 2 * experts
        options["replicas"] = torch.arange(physical, dtype=torch.int32).view(experts, 2)
        options["num_replicas"] = torch.full((experts,), 2, dtype=torch.int32)
        options["num_physical_experts"] = physical
    if draw(st.booleans()):
        bound = physical + options.get("num_shared_experts", 0)
        options["expert_map"] = torch.arange(bound, dtype=torch.int32) % 5 - 1
        options["num_local_experts"] = 4
    return {
        "logits": torch.randn(tokens, experts).to(draw(st.sampled_from([torch.float32, torch.bfloat16]))),
        "top_k": draw(st.integers(1, min(experts, 8))),
        "block_size": draw(st.sampled_from([1, 16, 128])),
        "details": draw(st.booleans()),
        **options,
    }


@hypothesis.settings(max_examples=60)
@hypothesis.given(problem=problems())
def test_is_gate_and_align(device, problem):
    call = {name: value.to(device) if torch.is_tensor(value) else value for name, value in problem.items()}
    expect_same(tokenyard.route(**call), in_two(**call))


@pytest.mark.parametrize("tokens", [1, 16, 64, 20000])  # in one launch, and in two with memory between them
def test_every_size(device, tokens):
    logits = torch.randn(tokens, 256, device=device).bfloat16()
    bias = torch.randn(256, device=device) / 8
    options = {"score": "sigmoid", "weight_mode": "renormalized", "num_groups": 8, "kept_groups": 4}
    options.update(bias=bias, group_score="top2", scale=2.5)
    expect_same(tokenyard.route(logits, 8, 64, **options), in_two(logits, 8, 64, **options))


def test_writes_into_tensors(device):
    logits = torch.randn(33, 16, device=device)
    chosen, order = in_two(logits, 2, 4, num_shared_experts=1)
    want = [*chosen[:2], *order[:3]]
    got = [torch.full_like(tensor, -7) for tensor in want]
    names = ("ids", "weights", "sorted_pair_ids", "block_expert", "num_padded")
    torch.ops.tokenyard.route_out(logits, 2, 4, num_shared_experts=1, **dict(zip(names, got)))
    assert all(torch.equal(a, b) for a, b in zip(got, want))


def logits(*shape, **options):
    return torch.zeros(shape, **options)


REFUSED = {
    "dtype": (lambda: (logits(4, 8).double(), 2, 4), {}, "gate: logits is of type Double, expected float32"),
    "top_k": (lambda: (logits(4, 8), 0, 4), {}, "gate: top_k is 0, expected 1 to"),
    "too many": (lambda: (logits(4, 8), 9, 4), {}, "gate: top_k is 9, expected 1 to 8"),
    "score": (lambda: (logits(4, 8), 2, 4), {"score": "relu"}, 'gate: score is "relu", expected "softmax"'),
    "ids": (lambda: (logits(4, 8), 2, 4), {"ids_dtype": torch.int16}, "gate: ids is of type Short, expected"),
    "block": (lambda: (logits(4, 8), 2, 0), {}, "align: block_size is 0, expected 1 to"),
    "half a map": (
        lambda: (logits(4, 8), 2, 4),
        {"num_local_experts": 2},
        "align: expert_map is None, expected both",
    ),
    "map of chosen ones": (
        lambda: (logits(4, 8), 2, 4),
        {"num_shared_experts": 1, "expert_map": torch.zeros(8, dtype=torch.int32), "num_local_experts": 2},
        r"align: expert_map is of shape \[8\], expected 9 elements",
    ),
    "sum of experts": (
        lambda: (logits(4, 4096), 2, 4),
        {"num_shared_experts": 1},
        "align: num_experts is 4097, expected 1 to 4096",
    ),
}


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_refuses_in_a_sentence(name, details):
    args, options, says = REFUSED[name]
    with pytest.raises(RuntimeError, match=f"^route: {says}"):
        tokenyard.route(*args(), **options, details=details)


OPTIONS = {
    "plain": {},
    "biased": {"score": "sigmoid", "weight_mode": "renormalized", "bias": torch.zeros(64)},
    "mapped": {
        "num_shared_experts": 1,
        "ids_dtype": torch.int64,
        "expert_map": torch.arange(65, dtype=torch.int32) // 2,
        "num_local_experts": 33,
    },
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("operator", [torch.ops.tokenyard.route, torch.ops.tokenyard.route_with_details])
def test_keeps_the_rules_of_operators(device, operator, name):
    options = {
        option: value.to(device) if torch.is_tensor(value) else value
        for option, value in OPTIONS[name].items()
    }
    torch.library.opcheck(operator.default, (torch.randn(9, 64, device=device), 6, 4), options)


def test_keeps_the_rules_of_operators_that_write(device):
    scores = torch.randn(9, 64, device=device)
    chosen, order = tokenyard.route(scores, 6, 4)
    outputs = {name: torch.empty_like(getattr(chosen, name)) for name in chosen._fields[:2]}
    outputs.update({name: torch.empty_like(getattr(order, name)) for name in order._fields[:3]})
    torch.library.opcheck(torch.ops.tokenyard.route_out.default, (scores, 6, 4), outputs)
