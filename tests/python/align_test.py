"""align on tensors, against the definition."""

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


def expect(order, want):
    for name, values in want.items():
        got = getattr(order, name)
        if got is not None:
            np.testing.assert_array_equal(got.cpu().numpy(), values, err_msg=name)


@st.composite
def problems(draw):
    experts = draw(st.sampled_from([1, 2, 7, 64, 255, 256, 257, 600]))
    tokens = draw(st.sampled_from([0, 1, 2, 5, 33, 300, 700]))
    top_k = draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    low, high = draw(st.sampled_from([(0, experts), (-2, experts + 2), (0, 1), (-5, 0)]))
    ids = rng.integers(low, high, (tokens, top_k))
    expert_map = None
    local_experts = draw(st.sampled_from([None, 1, experts]))
    if local_experts is not None:
        expert_map = rng.integers(-2, local_experts + 1, experts).astype(np.int32)
    first_id = draw(st.sampled_from([0, -1, 1000])) if expert_map is None else 0
    return {
        "ids": (ids + first_id).astype(draw(st.sampled_from([np.int32, np.int64]))),
        "experts": experts,
        "block": draw(st.sampled_from([1, 3, 16, 128])),
        "expert_map": expert_map,
        "local_experts": local_experts,
        "first_id": first_id,
    }


def run(device, ids, experts, block, expert_map, local_experts, details, first_id=0):
    if expert_map is not None:
        expert_map = torch.from_numpy(expert_map).to(device)
    topk_ids = torch.from_numpy(ids).to(device)
    return tokenyard.align(
        topk_ids,
        experts,
        block,
        expert_map=expert_map,
        num_local_experts=local_experts,
        first_id=first_id,
        details=details,
    )


@hypothesis.settings(max_examples=60)
@hypothesis.given(problem=problems(), details=st.booleans())
def test_is_what_the_definition_says(device, problem, details):
    order = run(device, **problem, details=details)
    assert (order.counts is not None) == details
    expect(order, oracle.align(**problem))


@pytest.mark.parametrize("tokens", [1500, 20000])  # beyond one block's reach, where blocks exchange counts
def test_large_batches(device, tokens):
    ids = np.random.default_rng(tokens).integers(-1, 256, (tokens, 8)).astype(np.int32)
    expect(run(device, ids, 256, 128, None, None, details=False), oracle.align(ids, 256, 128))


CASES = json.loads((DATA / "align_cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_cases(device, case):
    dtype = getattr(torch, case.get("dtype", "int32"))
    ids = torch.tensor(case["ids"] or [[]], dtype=dtype, device=device)
    if not case["ids"]:
        ids = ids.view(0, 1)
    expert_map = case.get("expert_map")
    if expert_map is not None:
        expert_map = torch.tensor(expert_map, dtype=torch.int32, device=device)
    order = tokenyard.align(
        ids,
        case["num_experts"],
        case["block_size"],
        expert_map=expert_map,
        num_local_experts=case.get("local"),
        details=True,
    )
    want = case["want"]
    used = want["num_padded"]
    assert order.num_padded.tolist() == [used]
    assert order.sorted_pair_ids.tolist()[:used] == want["sorted_pair_ids"]
    assert set(order.sorted_pair_ids.tolist()[used:]) <= {want["pad_value"]}
    blocks = len(want["block_expert"])
    for name, tail in (("block_expert", -1), ("block_rows", 0)):
        values = getattr(order, name).tolist()
        assert values[:blocks] == want[name] and set(values[blocks:]) <= {tail}
    for name in ("counts", "offsets"):
        assert getattr(order, name).tolist() == want[name]
    assert order.inverse.flatten().tolist() == want["inverse"]
    assert order.num_dropped.tolist() == [want["num_dropped"]]


def test_rows_may_be_apart(device):
    wide = torch.randint(-1, 64, (40, 12), device=device)
    for view in (wide[:, 2:6], wide[::3, :4], wide[:, :1], wide[5:6, 1:], wide.T[:1].T):
        expect(tokenyard.align(view, 64, 16), oracle.align(view.cpu().numpy(), 64, 16))


def test_writes_into_tensors(device):
    ids = torch.randint(-1, 8, (33, 2), dtype=torch.int32, device=device)
    want = oracle.align(ids.cpu().numpy(), 8, 4)
    room = tokenyard.align_capacity(66, 8, 4) + 6  # not a whole number of blocks
    sizes = (room, -(-room // 4), 1)
    order = tokenyard.AlignedOrder(
        *(torch.full((size,), -7, dtype=torch.int32, device=device) for size in sizes)
    )
    torch.ops.tokenyard.align_out(
        ids,
        8,
        4,
        sorted_pair_ids=order.sorted_pair_ids,
        block_expert=order.block_expert,
        num_padded=order.num_padded,
    )
    want["sorted_pair_ids"] = np.append(want["sorted_pair_ids"], [66] * 6)
    want["block_expert"] = np.append(want["block_expert"], [-1, -1])
    expect(order, want)


def ids(*shape, **options):
    return torch.zeros(shape, **{"dtype": torch.int32, **options})


MAP = torch.zeros(4, dtype=torch.int32)
REFUSED = {
    "dtype": (
        lambda: (ids(4, 2, dtype=torch.float32), 4, 8),
        {},
        "topk_ids is of type Float, expected int32 or int64",
    ),
    "dimensions": (lambda: (ids(4), 4, 8), {}, r"topk_ids is of shape \[4\], expected two dimensions"),
    "columns": (
        lambda: (ids(4, 2).T, 4, 8),
        {},
        r"strides \[1, 2\], expected contiguous rows.*: make a contiguous copy",
    ),
    "overlap": (lambda: (ids(1, 2).expand(3, 2), 4, 8), {}, r"strides \[0, 1\], expected .* do not overlap"),
    "no choices": (lambda: (ids(4, 0), 4, 8), {}, "top_k is 0, expected 1 to"),
    "experts": (lambda: (ids(4, 2), 4097, 8), {}, "num_experts is 4097, expected 1 to 4096"),
    "block": (lambda: (ids(4, 2), 4, 0), {}, "block_size is 0, expected 1 to"),
    "wide block": (lambda: (ids(4, 2), 4, 2**40), {}, "block_size is 1099511627776, expected at most"),
    "capacity": (lambda: (ids(4, 2), 4096, 2**30), {}, "may need more than 2147483647 slots"),
    "half a map": (
        lambda: (ids(4, 2), 4, 8),
        {"expert_map": MAP},
        "num_local_experts is None, expected both",
    ),
    "no map": (lambda: (ids(4, 2), 4, 8), {"num_local_experts": 2}, "expert_map is None, expected both"),
    "short map": (
        lambda: (ids(4, 2), 5, 8),
        {"expert_map": MAP, "num_local_experts": 2},
        r"expert_map is of shape \[4\], expected 5 elements",
    ),
    "wide map": (
        lambda: (ids(4, 2), 4, 8),
        {"expert_map": MAP.long(), "num_local_experts": 2},
        "expert_map is of type Long, expected int32",
    ),
    "local experts": (
        lambda: (ids(4, 2), 4, 8),
        {"expert_map": MAP, "num_local_experts": 0},
        "num_local_experts is 0, expected 1 to",
    ),
}


@pytest.mark.parametrize("args,options,says", REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("details", [False, True])
def test_refuses_in_a_sentence(args, options, says, details):
    with pytest.raises(RuntimeError, match=f"^align: .*{says}"):
        tokenyard.align(*args(), **options, details=details)


def test_refuses_tensors_of_two_devices(cuda):
    with pytest.raises(RuntimeError, match="expert_map is on the CPU, expected CUDA device 0, as the input"):
        tokenyard.align(ids(4, 2, device=cuda), 4, 8, expert_map=MAP, num_local_experts=2)


def test_refuses_devices_that_it_has_no_code_for():
    with pytest.raises(NotImplementedError):
        torch.ops.tokenyard.align(torch.zeros(4, 2, dtype=torch.int32).to_sparse(), 4, 8)


def test_capacity():
    assert tokenyard.align_capacity(0, 4, 8) == 0
    assert tokenyard.align_capacity(3, 4, 8) == 24
    assert tokenyard.align_capacity(100, 4, 8) == 128
    with pytest.raises(ValueError, match="align_capacity: 3 pairs of 0 experts in blocks of 8"):
        tokenyard.align_capacity(3, 0, 8)


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("tokens", [0, 1, 600])
def test_keeps_the_rules_of_operators(device, details, tokens):
    topk_ids = torch.randint(-1, 16, (tokens, 8), device=device)
    expert_map = torch.arange(16, dtype=torch.int32, device=device) // 2
    operator = torch.ops.tokenyard.align_with_details if details else torch.ops.tokenyard.align
    torch.library.opcheck(operator.default, (topk_ids, 16, 4))
    torch.library.opcheck(operator.default, (topk_ids, 16, 4, expert_map, 8))


def test_keeps_the_rules_of_operators_that_write(device):
    topk_ids = torch.randint(-1, 16, (30, 2), device=device)
    order = tokenyard.align(topk_ids, 16, 4)
    outputs = {name: torch.empty_like(getattr(order, name)) for name in order._fields[:3]}
    torch.library.opcheck(torch.ops.tokenyard.align_out.default, (topk_ids, 16, 4), outputs)
