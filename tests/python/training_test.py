"""Gradients, losses and balancing, against PyTorch's autograd of their formulas in float64."""

import pytest
import torch

import tokenyard

tokenyard.ops  # registers torch.ops.tokenyard


def scores_of(logits, score):
    if score == "softmax":
        return logits.softmax(1)
    return logits.sigmoid() if score == "sigmoid" else torch.nn.functional.softplus(logits).sqrt()


def weights_of(logits, ids, score, weight_mode, epsilon=0.0, scale=1.0):
    """The weights of given ids, by gate's contract."""
    if weight_mode == "softmax_of_chosen":
        return scale * logits.gather(1, ids).softmax(1)
    chosen = scores_of(logits, score).gather(1, ids)
    if weight_mode == "renormalized":
        chosen = chosen / (chosen.sum(1, keepdim=True) + epsilon)
    return scale * chosen


def draw(*shape, device, seed=0):
    """The same numbers on every device."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device)


def leaf(tensor):
    return tensor.detach().clone().requires_grad_()


def exact(tensor):
    """The same numbers in float64, to differentiate."""
    return leaf(tensor.double())


SCORES = ("softmax", "sigmoid", "sqrt_softplus")
MODES = ("raw", "renormalized", "softmax_of_chosen")


@pytest.mark.parametrize("operation", ["gate", "route"])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("weight_mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_have_the_gradient_of_their_formula(device, operation, score, weight_mode, dtype):
    options = {"score": score, "weight_mode": weight_mode, "epsilon": 1e-3, "scale": 2.5}
    logits = leaf(draw(40, 64, device=device).to(dtype))
    if operation == "gate":
        chosen = tokenyard.gate(logits, 6, **options, counts=True)
    else:
        chosen, _ = tokenyard.route(logits, 6, 16, **options)
    upstream = draw(40, 6, device=device, seed=1)
    chosen.weights.backward(upstream)

    same = exact(logits)
    weights_of(same, chosen.ids.long(), **options).backward(upstream.double())
    rounding = {"rtol": 1e-2, "atol": 1e-3} if dtype is torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-6}
    assert logits.grad.dtype is dtype
    torch.testing.assert_close(logits.grad.double(), same.grad, **rounding)


@pytest.mark.parametrize("shared_mode", ["fixed", "of_sum"])
def test_shared_experts_pass_their_gradient_on(device, shared_mode):
    logits = leaf(draw(20, 16, device=device))
    chosen = tokenyard.gate(
        logits, 3, score="sigmoid", num_shared_experts=2, shared_mode=shared_mode, shared_weight=0.5
    )
    upstream = draw(20, 5, device=device, seed=1)
    chosen.weights.backward(upstream)
    same = exact(logits)
    weights = weights_of(same, chosen.ids[:, :3].long(), "sigmoid", "raw")
    if shared_mode == "of_sum":
        weights = torch.cat([weights, 0.5 * weights.sum(1, keepdim=True).expand(20, 2)], 1)
    weights.backward(upstream[:, : weights.size(1)].double())
    torch.testing.assert_close(logits.grad.double(), same.grad, rtol=1e-4, atol=1e-6)


def test_padding_tokens_and_biases_have_no_gradient(device):
    logits = leaf(draw(6, 8, device=device))
    bias = leaf(draw(8, device=device))
    real = torch.tensor([4], dtype=torch.int32, device=device)
    chosen = tokenyard.gate(logits, 2, bias=bias, score="sigmoid", num_real_tokens=real)
    chosen.weights.sum().backward()
    assert logits.grad[:4].count_nonzero() == 8 and logits.grad[4:].count_nonzero() == 0
    assert bias.grad is None and not chosen.ids.requires_grad


def test_replicas_are_for_inference(device):
    replicas = torch.arange(16, dtype=torch.int32, device=device).view(8, 2)
    chosen = tokenyard.gate(
        leaf(draw(6, 8, device=device)),
        2,
        replicas=replicas,
        num_replicas=torch.full((8,), 2, dtype=torch.int32, device=device),
        num_physical_experts=16,
    )
    with pytest.raises(
        RuntimeError, match="gate_backward: replicas is given, expected None: .*train without"
    ):
        chosen.weights.sum().backward()


def test_there_is_no_second_gradient(device):
    logits, factor = leaf(draw(6, 8, device=device)), leaf(torch.ones((), device=device))
    weights = tokenyard.gate(logits, 2).weights
    (gradient,) = torch.autograd.grad((factor * weights).sum(), logits, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        gradient.sum().backward()


def router_loss(logits, counts, offsets, score, balance_coefficient, z_coefficient):
    """The formulas of docs/training.md, in float64."""
    balance, squares = logits.new_zeros(()), []
    for sequence, (first, last) in enumerate(zip(offsets[:-1], offsets[1:])):
        rows = scores_of(logits[first:last], score)
        load = counts[sequence].double() * logits.size(1) / counts[sequence].sum()
        balance = balance + (load * (rows / rows.sum(1, keepdim=True)).mean(0)).sum() / (len(offsets) - 1)
        squares.append(logits[first:last].logsumexp(1).square())
    return balance_coefficient * balance, z_coefficient * torch.cat(squares).mean()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("offsets", [None, [0, 10, 25, 40]])
@pytest.mark.parametrize("coefficients", [(0.5, 0.0), (0.0, 0.25), (0.5, 0.25)])
@pytest.mark.parametrize("given", ["ids", "counts"])
def test_losses_are_their_formulas(device, score, offsets, coefficients, given):
    logits = leaf(draw(40, 32, device=device))
    ids = tokenyard.gate(logits, 4, num_shared_experts=1).ids
    bounds = offsets or [0, 40]
    counts = torch.stack(
        [ids[a:b, :4].flatten().bincount(minlength=32) for a, b in zip(bounds[:-1], bounds[1:])]
    ).int()
    if offsets is not None:
        offsets = torch.tensor(offsets, dtype=torch.int32, device=device)
    router = tokenyard.router_loss(
        logits,
        ids if given == "ids" else None,
        top_k=4,
        counts=counts if given == "counts" else None,
        sequence_offsets=offsets,
        score=score,
        balance_coefficient=coefficients[0],
        z_coefficient=coefficients[1],
    )
    (3 * router.loss).backward()

    same = exact(logits)
    balance, z = router_loss(same, counts, bounds, score, *coefficients)
    (3 * (balance + z)).backward()
    torch.testing.assert_close(router.balance.double(), balance.detach(), rtol=1e-5, atol=0)
    torch.testing.assert_close(router.z.double(), z.detach(), rtol=1e-5, atol=0)
    torch.testing.assert_close(router.loss, router.balance + router.z)
    torch.testing.assert_close(logits.grad.double(), same.grad, rtol=1e-4, atol=1e-7)
    assert not router.balance.requires_grad and not router.z.requires_grad
    if given == "counts":
        assert router.counts is None
    elif coefficients[0] != 0:
        assert torch.equal(router.counts, counts)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_a_step_moves_the_bias_against_the_load(device, dtype):
    counts = torch.tensor([5, 3, 1, 3], dtype=dtype, device=device)
    bias = torch.ones(4, device=device)
    tokenyard.balance_step(bias, counts, rate=0.25)
    assert bias.tolist() == [0.75, 1.0, 1.25, 1.0]
    tokenyard.balance_step(bias, counts)
    assert bias.tolist() == pytest.approx([0.749, 1.0, 1.251, 1.0])


def test_steps_even_out_a_load(device):
    logits = draw(500, 16, device=device) + torch.linspace(0, 2, 16, device=device)
    bias = torch.zeros(16, device=device)
    for _ in range(200):
        chosen = tokenyard.gate(logits, 2, bias=bias, score="sigmoid", counts=True)
        tokenyard.balance_step(bias, chosen.counts, rate=0.01)
    before = tokenyard.load_statistics(tokenyard.gate(logits, 2, counts=True).counts)
    after = tokenyard.load_statistics(chosen.counts)
    assert before.max > 2 and after.max < 1.3 and after.min > 0.7


def test_statistics_are_their_definitions(device):
    counts = torch.tensor([6, 2, 0, 4], device=device)
    load = tokenyard.load_statistics(counts)
    shares = counts.double() / 12
    entropy = -(shares * shares.log()).nansum() / torch.tensor(4.0).double().log().to(device)
    want = (2.0, 0.0, entropy.item(), 0.25)
    assert [value.item() for value in load] == pytest.approx(want, abs=2e-6)


def ids(*shape):
    return torch.zeros(shape, dtype=torch.int32)


BALANCE = {"balance_coefficient": 1.0}
LOSSES_REFUSED = {
    "neither": (lambda: (torch.zeros(4, 8),), BALANCE, "counts is None, expected ids or counts where"),
    "both": (
        lambda: (torch.zeros(4, 8), ids(4, 2)),
        {**BALANCE, "counts": ids(1, 8)},
        "counts is given, expected None where ids are",
    ),
    "tokens": (
        lambda: (torch.zeros(4, 8), ids(3, 2)),
        BALANCE,
        r"ids is of shape \[3, 2\], expected \[4, col",
    ),
    "top_k": (
        lambda: (torch.zeros(4, 8), ids(4, 2)),
        {**BALANCE, "top_k": 3},
        "top_k is 3, expected at most 2",
    ),
    "counts": (lambda: (torch.zeros(4, 8),), {**BALANCE, "counts": ids(2, 8)}, "expected 8 elements"),
    "offsets": (
        lambda: (torch.zeros(4, 8), ids(4, 2)),
        {**BALANCE, "sequence_offsets": ids(1)},
        r"sequence_offsets is of shape \[1\], expected at least two",
    ),
    "score": (lambda: (torch.zeros(4, 8), ids(4, 2)), {"score": "x"}, 'score is "x", expected "softmax"'),
    "dtype": (lambda: (torch.zeros(4, 8).double(), ids(4, 2)), {}, "logits is of type Double, expected"),
}


def test_a_loss_of_float16_may_be_scaled_beyond_float16(device):
    logits = torch.randn(8, 8, device=device, dtype=torch.float16, requires_grad=True)
    router = tokenyard.router_loss(logits, z_coefficient=1e-3)
    (alone,) = torch.autograd.grad(router.loss, logits, retain_graph=True)
    (scaled,) = torch.autograd.grad(65536 * router.loss, logits)
    torch.testing.assert_close(scaled, (65536 * alone.float()).half())


@pytest.mark.parametrize("name", LOSSES_REFUSED)
def test_losses_are_refused_in_a_sentence(name):
    args, options, says = LOSSES_REFUSED[name]
    with pytest.raises(RuntimeError, match=f"^router_loss: .*{says}"):
        tokenyard.router_loss(*args(), **options)


def test_balancing_is_refused_in_a_sentence():
    with pytest.raises(RuntimeError, match=r"^balance: bias is of shape \[3\], expected 4 elements"):
        tokenyard.balance_step(torch.zeros(3), torch.zeros(4, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="^balance: counts is of type Float, expected int32 or int64"):
        tokenyard.load_statistics(torch.zeros(4))


def test_the_backward_is_refused_in_a_sentence():
    grad, scores = torch.zeros(4, 2), torch.zeros(4, 8)
    for call, says in (
        ((grad, scores, ids(4, 2), 3), "top_k is 3, expected at most 2"),
        ((grad, scores, ids(4, 3), 3), r"weights_grad is of shape \[4, 2\], expected 12 elements"),
        ((grad, scores, ids(4, 2).float(), 2), "ids is of type Float, expected int32 or int64"),
    ):
        with pytest.raises(RuntimeError, match=f"^gate_backward: {says}"):
            torch.ops.tokenyard.gate_backward(*call)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("operation", ["gate", "route"])
def test_gradients_are_compiled(device, operation, counts):
    bias = draw(64, device=device, seed=1)

    def loss(logits):
        options = {"bias": bias, "score": "sigmoid", "num_shared_experts": 1, "shared_mode": "of_sum"}
        if operation == "gate":
            chosen = tokenyard.gate(logits, 6, counts=counts, **options)
        else:
            chosen, _ = tokenyard.route(logits, 6, 4, details=counts, **options)
        router = tokenyard.router_loss(
            logits, chosen.ids, top_k=6, balance_coefficient=0.5, z_coefficient=0.1
        )
        return chosen.weights.square().sum() + router.loss

    gradients = []
    for function in (loss, torch.compile(loss, fullgraph=True, dynamic=True, backend="aot_eager")):
        logits = leaf(draw(9, 64, device=device))
        function(logits).backward()
        gradients.append(logits.grad)
    assert torch.equal(*gradients) and gradients[0].count_nonzero() > 0


def test_keeps_the_rules_of_operators(device):
    logits = draw(9, 64, device=device)
    chosen = tokenyard.gate(logits, 6, counts=True)
    opcheck, ops = torch.library.opcheck, torch.ops.tokenyard
    opcheck(ops.gate_backward.default, (torch.ones_like(chosen.weights), logits, chosen.ids, 6))
    opcheck(ops.balance_step.default, (torch.zeros(64, device=device), chosen.counts, 0.1))
    opcheck(ops.load_statistics.default, (chosen.counts,))
    offsets = torch.tensor([0, 4, 9], dtype=torch.int32, device=device)
    for options in (
        {"ids": chosen.ids, "sequence_offsets": offsets, "balance_coefficient": 0.5},
        {"counts": chosen.counts, "balance_coefficient": 0.5, "z_coefficient": 0.25},
        {"z_coefficient": 0.25},
    ):
        opcheck(ops.router_loss.default, (logits,), options)
