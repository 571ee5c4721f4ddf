"""Times calls of PyTorch as `tokenyard bench` does its own: events around replays of a graph of 20 calls."""

import time

import numpy as np
import torch

CALLS_IN_GRAPH = 20
REPLAYS = 60
WARM_UPS = 10
QUEUED_CALLS = 100
QUEUES = 10
TIMER = f"events around graph replays, {CALLS_IN_GRAPH} calls in a graph, {REPLAYS} replays"


def time_graph(call, inputs):
    """µs a call, one for each replay."""
    for each in inputs:
        call(each)  # compiles and loads, neither of which may happen under capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for each in inputs:
            call(each)
    for _ in range(WARM_UPS):
        graph.replay()
    torch.cuda.synchronize()
    samples = []
    for _ in range(REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        samples.append(1000 * begin.elapsed_time(end) / len(inputs))
    return samples


def host_ns(call, inputs):
    """ns a call, of queues that the device does not hold up."""
    samples = []
    for _ in range(QUEUES):
        start = time.perf_counter_ns()
        for i in range(QUEUED_CALLS):
            call(inputs[i % len(inputs)])
        samples.append((time.perf_counter_ns() - start) / QUEUED_CALLS)
        torch.cuda.synchronize()
    return float(np.median(samples))


def timed(call, inputs, empty):
    """The fields of a row that say how long `call` takes; `empty` launches a kernel that does nothing."""
    floor = float(np.median(time_graph(empty, inputs)))
    p20, p50, p80 = np.percentile(time_graph(call, inputs), [20, 50, 80])
    return {
        "floor_us": round(floor, 3),
        "us_p20": round(float(p20), 3),
        "us_p50": round(float(p50), 3),
        "us_p80": round(float(p80), 3),
        "host_ns": round(host_ns(call, inputs)),
    }
