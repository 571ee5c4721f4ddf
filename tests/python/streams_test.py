"""On a card: streams and graphs, one beside the other, share nothing."""

import pytest
import torch

import tokenyard

EXPERTS = 256
BLOCK = 64
ROUNDS = 30


def draw(tokens, device, seed):
    generator = torch.Generator(device).manual_seed(seed)
    return torch.rand(tokens, EXPERTS, device=device, generator=generator).topk(8).indices.int()


def align(ids):
    return tokenyard.align(ids, EXPERTS, BLOCK)


def same(got, want):
    return all(torch.equal(a, b) for a, b in zip(got[:3], want[:3]))


def expected(ids):
    """By the CPU, on which no stream can interfere."""
    return tokenyard.AlignedOrder(*(t.to(ids.device) for t in align(ids.cpu())[:3]))


class Captured:
    """A graph that sorts what it is given."""

    def __init__(self, tokens, device, stream=None, calls=1):
        self.ids = draw(tokens, device, seed=0)
        align(self.ids)  # what is loaded on a first call may not be loaded under capture
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            self.orders = [align(self.ids) for _ in range(calls)]

    def replay(self, ids):
        """On the current stream."""
        self.ids.copy_(ids)
        self.graph.replay()
        return [tokenyard.AlignedOrder(*(t.clone() for t in order[:3])) for order in self.orders]


@pytest.mark.parametrize("tokens", [1, 64, 1000, 20000])  # on every path
def test_a_graph_takes_other_routing(cuda, tokens):
    captured = Captured(tokens, cuda, calls=2)
    for seed in range(ROUNDS):
        ids = draw(tokens, cuda, seed)
        want = expected(ids)
        for order in captured.replay(ids):
            assert same(order, want)


def test_a_call_waits_for_its_stream_and_the_host_for_nothing(cuda):
    early, late = draw(3000, cuda, 1), draw(3000, cuda, 2)
    want = expected(late)
    logits = torch.randn(100, 64, device=cuda)
    stream = torch.cuda.Stream()

    def enqueue(cycles):
        ids = early.clone()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(cycles)
            ids.copy_(late)
            return align(ids), tokenyard.gate(logits, 4), stream.query()

    enqueue(1)  # loads kernels, for which the driver may wait
    order, chosen, done = enqueue(200_000_000)
    assert not done, "the calls waited for the device"
    stream.synchronize()
    assert same(order, want)
    assert torch.equal(chosen.ids.cpu(), tokenyard.gate(logits.cpu(), 4).ids)


def test_streams_of_the_pool(cuda):
    """More streams than PyTorch has: some are the same stream under two names."""
    streams = [torch.cuda.Stream() for _ in range(70)]
    assert len({stream.cuda_stream for stream in streams}) < len(streams)
    problems = [draw(2000 + seed, cuda, seed) for seed in range(len(streams))]
    wants = [expected(ids) for ids in problems]
    torch.cuda.synchronize()
    for _ in range(5):
        orders = []
        for stream, ids in zip(streams, problems):
            with torch.cuda.stream(stream):
                orders.append(align(ids))
        torch.cuda.synchronize()
        assert all(same(order, want) for order, want in zip(orders, wants))


def test_graphs_and_eager_calls_at_once(cuda):
    """Two graphs, captured on one stream and replayed on others, beside eager calls on that stream and on
    more."""
    tokens = 20000
    capture_stream = torch.cuda.Stream()
    graphs = [Captured(tokens, cuda, capture_stream, calls=3) for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(4)]
    problems = [draw(tokens, cuda, seed) for seed in range(6)]
    wants = [expected(ids) for ids in problems]
    torch.cuda.synchronize()
    for start in range(ROUNDS):
        got = []
        for turn in range(8):
            number = (start + turn) % len(problems)
            for lane, stream in enumerate([*streams, capture_stream]):
                with torch.cuda.stream(stream):
                    run = graphs[lane].replay if lane < len(graphs) else lambda ids: [align(ids)]
                    got.append((number, run(problems[number])))
        torch.cuda.synchronize()
        for number, orders in got:
            assert all(same(order, wants[number]) for order in orders)


def test_a_graph_outlives_what_was_captured_with_it(cuda):
    """Memory that calls hold in a graph is the graph's: other calls do not get it meanwhile."""
    captured = Captured(20000, cuda)
    ids = draw(20000, cuda, 3)
    want = expected(ids)
    for _ in range(ROUNDS):
        clutter = [torch.full((1 << 18,), -1, dtype=torch.int32, device=cuda) for _ in range(20)]
        assert same(captured.replay(ids)[0], want)
        assert same(align(ids), want)
        del clutter
