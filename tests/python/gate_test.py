"""gate on tensors, against the definition in float64."""

import json
import pathlib

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import torch

import oracle
import tokenyard

tokenyard.ops  # registers torch.ops.tokenyard
DATA = pathlib.Path(__file__).parent.parent / "data"
CASES = json.loads((DATA / "gate_cases.json").read_text())


def expect_weights(got, want):
    np.testing.assert_allclose(got.double().cpu().numpy(), want, rtol=1e-5, atol=1e-37)


@st.composite
def problems(draw):
    """Without a bias, where ids are exact."""
    experts = draw(st.sampled_from([1, 2, 8, 60, 64, 128, 256, 384, 700]))
    groups = draw(st.sampled_from([None, *((g, min(g, 2)) for g in (2, 4) if experts % g == 0)]))
    most = experts if groups is None else experts // groups[0] * groups[1]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    logits = rng.standard_normal((draw(st.sampled_from([0, 1, 3, 50])), experts))
    if draw(st.booleans()):
        logits = np.round(logits)  # many equal ones
    return {
        "logits": torch.from_numpy(logits).to(
            draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float16]))
        ),
        "top_k": draw(st.integers(1, min(most, 12))),
        "score": draw(st.sampled_from(["softmax", "sigmoid", "sqrt_softplus"])),
        "weight_mode": draw(st.sampled_from(["raw", "renormalized", "softmax_of_chosen"])),
        "groups": None if groups is None else (*groups, "max"),
        "scale": draw(st.sampled_from([1.0, 2.5])),
    }


@hypothesis.settings(max_examples=60)
@hypothesis.given(problem=problems())
def test_is_what_the_definition_says(device, problem):
    options = dict(problem)
    groups = options.pop("groups")
    if groups is not None:
        options.update(num_groups=groups[0], kept_groups=groups[1], group_score=groups[2])
    logits = options.pop("logits").to(device)
    chosen = tokenyard.gate(logits, **options, counts=True)
    ids, weights = oracle.gate(**{**problem, "logits": problem["logits"].double().numpy()})
    np.testing.assert_array_equal(chosen.ids.cpu().numpy(), ids)
    expect_weights(chosen.weights, weights)
    np.testing.assert_array_equal(
        chosen.counts.cpu().numpy(), np.bincount(ids.ravel(), minlength=logits.size(1))
    )


def number(value):
    return float(value) if isinstance(value, str) else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_cases(device, case):
    recorded = case["options"]
    options = {"score": {"sqrtsoftplus": "sqrt_softplus"}.get(case["scoring"], case["scoring"])}
    if "bias" in recorded:
        options["bias"] = torch.tensor(recorded["bias"], device=device)
    if "groups" in recorded:
        options.update(num_groups=recorded["groups"], kept_groups=recorded["keep_groups"])
        options["group_score"] = recorded.get("group_score", "max")
    if recorded.get("renorm"):
        options.update(weight_mode="renormalized", epsilon=1e-20)
    if recorded.get("softmax_after"):
        options["weight_mode"] = "softmax_of_chosen"
    logits = torch.tensor([[number(x) for x in row] for row in case["logits"]], device=device)
    chosen = tokenyard.gate(logits, case["k"], scale=recorded.get("scale", 1.0), **options)
    assert chosen.ids.tolist() == case["want_ids"], case["why"]
    expect_weights(chosen.weights, case["want_weights"])


def test_takes_a_bias_of_either_type(device):
    logits = torch.randn(20, 64, device=device).bfloat16()
    bias = torch.randint(-3, 3, (64,), device=device) / 4
    for given in (bias, bias.bfloat16()):
        chosen = tokenyard.gate(
            logits, 6, bias=given, score="sigmoid", weight_mode="renormalized", epsilon=1e-20
        )
        ids, weights = oracle.gate(
            logits.double().cpu().numpy(),
            6,
            bias.double().cpu().numpy(),
            "sigmoid",
            "renormalized",
            epsilon=1e-20,
        )
        np.testing.assert_array_equal(chosen.ids.cpu().numpy(), ids)
        expect_weights(chosen.weights, weights)


def test_appends_shared_experts(device):
    logits = torch.randn(5, 16, device=device)
    plain = tokenyard.gate(logits, 3, scale=2.0)
    fixed = tokenyard.gate(logits, 3, scale=2.0, num_shared_experts=2, shared_weight=0.5)
    assert fixed.ids[:, 3:].tolist() == [[16, 17]] * 5
    assert fixed.weights[:, 3:].tolist() == [[0.5, 0.5]] * 5
    assert torch.equal(fixed.weights[:, :3], plain.weights)
    of_sum = tokenyard.gate(logits, 3, num_shared_experts=1, shared_mode="of_sum", shared_weight=0.5)
    expect_weights(of_sum.weights[:, 3], 0.5 * of_sum.weights[:, :3].double().sum(1).cpu().numpy())


def test_renames_experts_to_their_replicas(device):
    logits = torch.randn(200, 8, device=device)
    replicas = torch.arange(16, dtype=torch.int32, device=device).view(8, 2)
    several = torch.tensor([2, 1] * 4, dtype=torch.int32, device=device)
    plain = tokenyard.gate(logits, 2)
    renamed = tokenyard.gate(
        logits, 2, replicas=replicas, num_replicas=several, num_physical_experts=16, counts=True
    )
    assert torch.equal(renamed.ids // 2, plain.ids)
    assert not (renamed.ids % 4 == 3).any()
    assert torch.equal(renamed.physical_counts, renamed.ids.flatten().bincount(minlength=16).int())
    assert torch.equal(renamed.counts, plain.ids.flatten().bincount(minlength=8).int())


def test_padding_tokens_have_no_experts(device):
    logits = torch.randn(6, 8, device=device)
    real = torch.tensor([4], dtype=torch.int32, device=device)
    chosen = tokenyard.gate(logits, 2, num_real_tokens=real, ids_dtype=torch.int64, counts=True)
    assert chosen.ids.dtype == torch.int64
    assert torch.equal(chosen.ids[:4], tokenyard.gate(logits[:4], 2).ids.long())
    assert (chosen.ids[4:] == -1).all() and (chosen.weights[4:] == 0).all()
    assert chosen.counts.sum() == 8


def test_rows_may_be_apart(device):
    wide = torch.randn(30, 100, device=device)
    for view in (wide[:, 3:67], wide[::4, :64], wide[2:3, :64]):
        got, want = tokenyard.gate(view, 4), tokenyard.gate(view.contiguous(), 4)
        assert torch.equal(got.ids, want.ids) and torch.equal(got.weights, want.weights)


def logits(*shape, **options):
    return torch.zeros(shape, **options)


MAP = torch.ones(8, dtype=torch.int32)
REFUSED = {
    "dtype": (
        lambda: (logits(4, 8, dtype=torch.float64), 2),
        {},
        "logits is of type Double, expected float32, bfloat16",
    ),
    "dimensions": (lambda: (logits(8), 2), {}, r"logits is of shape \[8\], expected two dimensions"),
    "columns": (
        lambda: (logits(4, 8).T, 2),
        {},
        r"strides \[1, 8\], expected contiguous rows.*: make a contiguous copy",
    ),
    "top_k": (lambda: (logits(4, 8), 0), {}, "top_k is 0, expected 1 to"),
    "too many": (lambda: (logits(4, 8), 9), {}, "top_k is 9, expected 1 to 8"),
    "no memory has room": (lambda: (logits(4, 8), 2**31 - 1), {}, "top_k is 2147483647, expected 1 to 8"),
    "score": (lambda: (logits(4, 8), 2), {"score": "relu"}, 'score is "relu", expected "softmax", "sigmoid"'),
    "mode": (lambda: (logits(4, 8), 2), {"weight_mode": "x"}, 'weight_mode is "x", expected "raw"'),
    "groups": (
        lambda: (logits(4, 8), 2),
        {"num_groups": 3, "kept_groups": 1},
        "num_groups is 3, expected a divisor",
    ),
    "shared": (lambda: (logits(4, 8), 2), {"num_shared_experts": -1}, "num_shared_experts is -1, expected 0"),
    "bias": (lambda: (logits(4, 8), 2), {"bias": logits(7)}, r"bias is of shape \[7\], expected 8 elements"),
    "bias type": (lambda: (logits(4, 8), 2), {"bias": logits(8).half()}, "bias_dtype is 4, expected"),
    "ids": (
        lambda: (logits(4, 8), 2),
        {"ids_dtype": torch.int16},
        "ids is of type Short, expected int32 or int64",
    ),
    "replicas": (lambda: (logits(4, 8), 2), {"replicas": MAP}, r"replicas is of shape \[8\], expected"),
    "physical": (
        lambda: (logits(4, 8), 2),
        {"replicas": MAP.view(8, 1), "num_replicas": MAP, "num_physical_experts": -1},
        "num_physical_experts is -1, expected 1 to",
    ),
    "many physical": (
        lambda: (logits(4, 8), 2),
        {"replicas": MAP.view(8, 1), "num_replicas": MAP, "num_physical_experts": 2**31 - 1},
        "num_physical_experts is 2147483647, expected 1 to",
    ),
}


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_refuses_in_a_sentence(name, counts):
    args, options, says = REFUSED[name]
    with pytest.raises(RuntimeError, match=f"^gate: .*{says}"):
        tokenyard.gate(*args(), **options, counts=counts)


def test_refuses_what_is_no_tensor():
    with pytest.raises(RuntimeError, match="gate.*'logits'.*ndarray"):
        tokenyard.gate(np.zeros((4, 8), np.float32), 2)


OPTIONS = {
    "plain": {},
    "deepseek": {
        "score": "sigmoid",
        "weight_mode": "renormalized",
        "num_groups": 8,
        "kept_groups": 4,
        "group_score": "top2",
        "epsilon": 1e-20,
        "scale": 2.5,
    },
    "shared": {"num_shared_experts": 1, "ids_dtype": torch.int64},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("operator", [torch.ops.tokenyard.gate, torch.ops.tokenyard.gate_with_counts])
def test_keeps_the_rules_of_operators(device, operator, options):
    torch.library.opcheck(operator.default, (torch.randn(9, 64, device=device), 6), options)


def test_keeps_the_rules_of_operators_that_write(device):
    outputs = {
        "ids": torch.empty(9, 6, dtype=torch.int64, device=device),
        "weights": torch.empty(9, 6, device=device),
    }
    torch.library.opcheck(
        torch.ops.tokenyard.gate_out.default, (torch.randn(9, 64, device=device), 6), outputs
    )
