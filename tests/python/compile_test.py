"""torch.compile takes the operators whole."""

import pytest
import torch

import tokenyard


def in_two(logits):
    chosen = tokenyard.gate(logits, 4, weight_mode="renormalized", counts=True)
    return chosen, tokenyard.align(chosen.ids, logits.size(1), 16, details=True)


def in_one(logits):
    return tokenyard.route(logits, 4, 16, weight_mode="renormalized", num_shared_experts=1)


LAYERS = [in_two, in_one]


def expect_same(got, want):
    for one, other in zip(got, want):
        assert all(torch.equal(a, b) for a, b in zip(one, other) if b is not None)


@pytest.mark.parametrize("layer", LAYERS)
def test_compiles_into_one_graph(device, layer):
    compiled = torch.compile(layer, fullgraph=True)
    logits = torch.randn(50, 64, device=device)
    expect_same(compiled(logits), layer(logits))


@pytest.mark.parametrize("layer", LAYERS)
def test_compiles_once_for_all_batches(device, layer):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=backend)
    for tokens in (50, 3, 700):
        logits = torch.randn(tokens, 64, device=device)
        expect_same(compiled(logits), layer(logits))
    assert len(graphs) == 1


def training_step(logits, bias):
    chosen, _ = tokenyard.route(logits, 4, 16, bias=bias, score="sigmoid", details=True)
    router = tokenyard.router_loss(
        logits, chosen.ids, score="sigmoid", balance_coefficient=0.5, z_coefficient=0.25
    )
    tokenyard.balance_step(bias, chosen.counts, rate=0.5)
    return chosen.weights.square().sum() + router.loss, tokenyard.load_statistics(chosen.counts).max


def test_compiles_a_step_of_training(device):
    drawn = torch.randn(50, 64, device=device)
    backend = "inductor" if device == "cuda" else "aot_eager"  # on a CPU it would compile C++ for long
    results = []
    for step in (training_step, torch.compile(training_step, fullgraph=True, backend=backend)):
        logits, bias = drawn.clone().requires_grad_(), torch.zeros(64, device=device)
        loss, load = step(logits, bias)
        loss.backward()
        results.append((loss.detach(), load, logits.grad, bias))
    for eager, compiled in zip(*results):
        torch.testing.assert_close(compiled, eager)
    assert results[0][2].count_nonzero() > 0 and results[0][3].count_nonzero() > 0


@pytest.mark.parametrize("layer", LAYERS)
def test_compiles_to_cuda_graphs(cuda, layer):
    compiled = torch.compile(layer, fullgraph=True, mode="reduce-overhead")
    for _ in range(5):
        logits = torch.randn(1000, 64, device=cuda)
        expect_same(compiled(logits), layer(logits))


def test_a_graph_of_what_was_compiled_takes_other_logits(cuda):
    compiled = torch.compile(in_one, fullgraph=True)
    logits = torch.randn(1000, 64, device=cuda)
    compiled(logits)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = compiled(logits)
    for _ in range(5):
        logits.normal_()
        graph.replay()
        expect_same(got, in_one(logits))
