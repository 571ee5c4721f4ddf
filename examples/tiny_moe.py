"""Trains a small mixture-of-experts language model on a CPU, and keeps what its routers chose.

    pip install . torch numpy tqdm  # in a checkout
    python examples/tiny_moe.py --out build/routings/balanced
    python examples/tiny_moe.py --out build/routings/unbalanced --rate 0

A transformer over bytes, whose every layer has 64 experts and gives each token 8 of them. The router is that
of DeepSeek-V3 without groups, tokenyard.gate with sigmoid scores and a bias, and the bias alone evens out the
load: after every step, tokenyard.balance_step moves it by --rate against each expert's load. tokenyard.align
brings the tokens into the order of their experts. It trains on the text that Python and Debian bring along,
for some five minutes.
"""

import argparse
import pathlib
import random
import sysconfig

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

import tokenyard

BYTES = 256
WIDTH, HEADS, LAYERS = 128, 4, 4
EXPERTS, TOP_K, HIDDEN = 64, 8, 32
CONTEXT, BATCH = 128, 16
LEARNING_RATE = 3e-3


class Router(nn.Module):
    """Chooses TOP_K experts for each row of x [tokens, WIDTH], and keeps what it chose last."""

    def __init__(self):
        super().__init__()
        self.logits = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.register_buffer("bias", torch.zeros(EXPERTS))

    def forward(self, x):
        chosen = tokenyard.gate(
            self.logits(x),
            TOP_K,
            bias=self.bias,
            score="sigmoid",
            weight_mode="renormalized",
            counts=True,
        )
        self.ids, self.counts = chosen.ids, chosen.counts
        return chosen.ids, chosen.weights


class Experts(nn.Module):
    """A SwiGLU network of HIDDEN units for each expert."""

    def __init__(self):
        super().__init__()
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, 2 * HIDDEN) / WIDTH**0.5)
        self.down = nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) / HIDDEN**0.5)

    def forward(self, x, ids, weights):
        # Blocks of one need no padding: a CPU has no tiles to fill. Pair t * TOP_K + k is token t's k-th.
        order = tokenyard.align(ids, EXPERTS, block_size=1, details=True)
        counts = order.counts.tolist()
        rows = F.embedding(order.sorted_pair_ids // TOP_K, x)  # x[tokens], whose gradient it sums faster
        value, gate = self._product(rows, counts, self.up).chunk(2, dim=1)
        rows = self._product(value * F.silu(gate), counts, self.down)
        # order.inverse [tokens, TOP_K] says where the rows of a token stand: their weighted sum.
        return F.embedding_bag(order.inverse, rows, per_sample_weights=weights, mode="sum")

    @staticmethod
    def _product(rows, counts, matrices):
        return torch.cat([run @ matrix for run, matrix in zip(rows.split(counts), matrices)])


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_experts = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.queries_keys_values = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.mix = nn.Linear(WIDTH, WIDTH, bias=False)
        self.router, self.experts = Router(), Experts()

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        tokens = self.before_experts(x).flatten(0, 1)
        return x + self.experts(tokens, *self.router(tokens)).view_as(x)

    def attention(self, x):
        heads = self.queries_keys_values(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return self.mix(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))


class Model(nn.Module):
    """Logits of the next byte, [batch, length, BYTES], from bytes [batch, length]."""

    def __init__(self):
        super().__init__()
        self.bytes, self.places = nn.Embedding(BYTES, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, BYTES, bias=False)

    def forward(self, text):
        x = self.bytes(text) + self.places.weight[: text.size(1)]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))

    def loss(self, windows):
        """Nats a byte over windows [batch, length + 1]."""
        return F.cross_entropy(self(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def default_files():
    """The sources of Python's standard library, and the licences that Debian keeps."""
    library = sysconfig.get_path("stdlib")
    return [*pathlib.Path(library).glob("*.py"), *pathlib.Path("/usr/share/common-licenses").glob("*")]


def read(files, seed):
    """(training, held-out) text, both uint8: every twentieth file of a drawn order is held out."""
    if len(files) < 2:
        raise SystemExit(f"--text: {len(files)} files, expected two or more: one is held out")
    drawn = random.Random(seed).sample(sorted(files), len(files))
    parts = drawn[::20], [file for number, file in enumerate(drawn) if number % 20]
    held_out, training = (
        np.frombuffer(b"".join(map(pathlib.Path.read_bytes, part)), np.uint8) for part in parts
    )
    folders = ", ".join(sorted({str(file.parent) for file in files}))
    print(f"text      {len(files)} files of {folders}:")
    print(f"          {len(training) / 1e6:.2f} MB to train on, {len(held_out) / 1e6:.2f} MB held out")
    return torch.tensor(training), torch.tensor(held_out)


def windows(text, number, generator):
    """[number, CONTEXT + 1] bytes from drawn places of a text."""
    starts = torch.randint(len(text) - CONTEXT, (number, 1), generator=generator)
    return text[starts + torch.arange(CONTEXT + 1)].long()


@torch.no_grad()
def routing(model, batch):
    """The loss of a batch, and in each layer the busiest expert's load / mean, and the tokens' experts,
    [tokens, TOP_K]."""
    loss = model.loss(batch).item()
    routers = [layer.router for layer in model.layers]
    return loss, [busiest(router) for router in routers], [router.ids for router in routers]


def busiest(router):
    """The load of its busiest expert over the mean: 1 where all are even."""
    return tokenyard.load_statistics(router.counts).max.item()


def train(model, text, steps, rate, generator):
    """Yields the number of steps done, from 0 on."""
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 20, 1 - step / steps)
    )
    with tqdm(total=steps, unit="step") as progress:
        yield 0
        for step in range(1, steps + 1):
            loss = model.loss(windows(text, BATCH, generator))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            for layer in model.layers:
                tokenyard.balance_step(layer.router.bias, layer.router.counts, rate)
            progress.update()
            load = max(busiest(layer.router) for layer in model.layers)
            progress.set_postfix(loss=f"{loss.item():.3f}", load=f"{load:.2f}")
            yield step


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=400, help="of training (default: 400)")
    parser.add_argument(
        "--rate", type=float, default=0.01, help="of the bias; 0: no balancing (default: 0.01)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights and text (default: 0)")
    parser.add_argument("--text", type=pathlib.Path, nargs="+", metavar="FILE", help="what to train on")
    parser.add_argument(
        "--out", type=pathlib.Path, metavar="FOLDER", help="write what the routers chose there"
    )
    options = parser.parse_args()

    generator = torch.manual_seed(options.seed)
    training, held_out = read(options.text or default_files(), options.seed)
    model = Model()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"model     {parameters / 1e6:.1f} million parameters")
    print(f"          in {LAYERS} layers of {EXPERTS} experts, {TOP_K} a token")
    batch = windows(held_out, BATCH, generator)
    kept = {}
    for step in train(model, training, options.steps, options.rate, generator):
        if step in (0, options.steps // 8, options.steps):
            kept[step] = routing(model, batch)

    print(f"held out  {BATCH} windows of {CONTEXT} bytes: nats a byte, and in each layer highest load / mean")
    for step, (loss, loads, _) in kept.items():
        print(f"  step {step:>4}  {loss:.3f}  ", *(f"{load:6.2f}" for load in loads))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        for step, (_, _, layers) in kept.items():
            for number, ids in enumerate(layers):
                np.save(options.out / f"step-{step}-layer-{number}.npy", ids.numpy().astype(np.uint8))
        print(f"wrote     the experts of each token, [{BATCH * CONTEXT}, {TOP_K}], to {options.out}")


if __name__ == "__main__":
    main()
