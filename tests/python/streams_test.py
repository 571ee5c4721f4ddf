"""On a card: streams and graphs, one beside the other, share nothing."""

import pytest
import torch

import tokenyard

EXPERTS = 256
BLOCK = 64
ROUNDS = 30


def draw_logits(tokens, device, seed):
    generator = torch.Generator(device).manual_seed(seed)
    return torch.randn(tokens, EXPERTS, device=device, generator=generator)


def draw(tokens, device, seed):
    return draw_logits(tokens, device, seed).topk(8).indices.int()


def align(ids):
    return tokenyard.align(ids, EXPERTS, BLOCK)[:3]


def route(logits):
    """Without a bias every device chooses the same experts."""
    chosen, order = tokenyard.route(logits, 8, BLOCK, weight_mode="renormalized")
    return *chosen[:2], *order[:3]


def same(got, want):
    """Weights to what devices' arithmetic may differ by, all else exactly."""

    def agree(a, b):
        return torch.allclose(a, b, rtol=1e-5, atol=0) if a.is_floating_point() else torch.equal(a, b)

    return len(got) == len(want) and all(agree(a, b) for a, b in zip(got, want))


def expected(operation, given):
    """By the CPU, on which no stream can interfere."""
    return tuple(tensor.to(given.device) for tensor in operation(given.cpu()))


OPERATIONS = pytest.mark.parametrize("operation,draw", [(align, draw), (route, draw_logits)])


class Captured:
    """A graph of an operation, on what it is given."""

    def __init__(self, operation, given, stream=None, calls=1):
        self.given = given.clone()
        operation(self.given)  # what is loaded on a first call may not be loaded under capture
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            self.results = [operation(self.given) for _ in range(calls)]

    def replay(self, given):
        """On the current stream."""
        self.given.copy_(given)
        self.graph.replay()
        return [tuple(tensor.clone() for tensor in result) for result in self.results]


@OPERATIONS
@pytest.mark.parametrize("tokens", [1, 64, 1000, 20000])  # on every path
def test_a_graph_takes_other_routing(cuda, operation, draw, tokens):
    captured = Captured(operation, draw(tokens, cuda, 0), calls=2)
    for seed in range(ROUNDS):
        given = draw(tokens, cuda, seed)
        want = expected(operation, given)
        for result in captured.replay(given):
            assert same(result, want)


def test_a_call_waits_for_its_stream_and_the_host_for_nothing(cuda):
    early, late = draw(3000, cuda, 1), draw(3000, cuda, 2)
    want = expected(align, late)
    logits = draw_logits(100, cuda, 1)
    stream = torch.cuda.Stream()

    def enqueue(cycles):
        ids = early.clone()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(cycles)
            ids.copy_(late)
            return align(ids), tokenyard.gate(logits, 4), route(logits), stream.query()

    enqueue(1)  # loads kernels, for which the driver may wait
    order, chosen, routed, done = enqueue(200_000_000)
    assert not done, "the calls waited for the device"
    stream.synchronize()
    assert same(order, want)
    assert torch.equal(chosen.ids.cpu(), tokenyard.gate(logits.cpu(), 4).ids)
    assert same(routed, expected(route, logits))


@OPERATIONS
def test_streams_of_the_pool(cuda, operation, draw):
    """More streams than PyTorch has: some are the same stream under two names."""
    streams = [torch.cuda.Stream() for _ in range(70)]
    assert len({stream.cuda_stream for stream in streams}) < len(streams)
    problems = [draw(2000 + seed, cuda, seed) for seed in range(len(streams))]
    wants = [expected(operation, given) for given in problems]
    torch.cuda.synchronize()
    for _ in range(5):
        results = []
        for stream, given in zip(streams, problems):
            with torch.cuda.stream(stream):
                results.append(operation(given))
        torch.cuda.synchronize()
        assert all(same(result, want) for result, want in zip(results, wants))


@OPERATIONS
def test_graphs_and_eager_calls_at_once(cuda, operation, draw):
    """Two graphs, captured on one stream and replayed on others, beside eager calls on that stream and on
    more."""
    tokens = 20000
    capture_stream = torch.cuda.Stream()
    problems = [draw(tokens, cuda, seed) for seed in range(6)]
    graphs = [Captured(operation, problems[0], capture_stream, calls=3) for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(4)]
    wants = [expected(operation, given) for given in problems]
    torch.cuda.synchronize()
    for start in range(ROUNDS):
        got = []
        for turn in range(8):
            number = (start + turn) % len(problems)
            for lane, stream in enumerate([*streams, capture_stream]):
                with torch.cuda.stream(stream):
                    run = graphs[lane].replay if lane < len(graphs) else lambda given: [operation(given)]
                    got.append((number, run(problems[number])))
        torch.cuda.synchronize()
        for number, results in got:
            assert all(same(result, wants[number]) for result in results)


@OPERATIONS
def test_a_graph_outlives_what_was_captured_with_it(cuda, operation, draw):
    """Memory that calls hold in a graph is the graph's: other calls do not get it meanwhile."""
    given = draw(20000, cuda, 3)
    captured = Captured(operation, draw(20000, cuda, 0))
    want = expected(operation, given)
    for _ in range(ROUNDS):
        clutter = [torch.full((1 << 18,), -1, dtype=torch.int32, device=cuda) for _ in range(20)]
        assert same(captured.replay(given)[0], want)
        assert same(operation(given), want)
        del clutter
