"""torch.compile takes the operators whole."""

import torch

import tokenyard


def layer(logits):
    chosen = tokenyard.gate(logits, 4, weight_mode="renormalized", counts=True)
    return chosen, tokenyard.align(chosen.ids, logits.size(1), 16, details=True)


def expect_same(got, want):
    for one, other in zip(got, want):
        assert all(torch.equal(a, b) for a, b in zip(one, other))


def test_compiles_into_one_graph(device):
    compiled = torch.compile(layer, fullgraph=True)
    logits = torch.randn(50, 64, device=device)
    expect_same(compiled(logits), layer(logits))


def test_compiles_once_for_all_batches(device):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=backend)
    for tokens in (50, 3, 700):
        logits = torch.randn(tokens, 64, device=device)
        expect_same(compiled(logits), layer(logits))
    assert len(graphs) == 1


def test_compiles_to_cuda_graphs(cuda):
    compiled = torch.compile(layer, fullgraph=True, mode="reduce-overhead")
    for _ in range(5):
        logits = torch.randn(1000, 64, device=cuda)
        expect_same(compiled(logits), layer(logits))
