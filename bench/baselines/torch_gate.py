"""gate as one writes it in PyTorch, after the models' own code, and as this library's operator."""

import dataclasses

import torch

import tokenyard.ops


@dataclasses.dataclass(frozen=True)
class Choice:
    """What a model's router does: arguments of tokenyard.gate, and whether it adds a bias."""

    name: str
    experts: int
    top_k: int
    dtype: torch.dtype
    options: dict
    biased: bool = False


CHOICES = [
    Choice(
        "deepseek-v3",
        256,
        8,
        torch.bfloat16,
        {
            "score": "sigmoid",
            "weight_mode": "renormalized",
            "num_groups": 8,
            "kept_groups": 4,
            "group_score": "top2",
            "epsilon": 1e-20,
            "scale": 2.5,
        },
        biased=True,
    ),
    Choice("deepseek-v2", 160, 6, torch.bfloat16, {"num_groups": 8, "kept_groups": 3, "scale": 16.0}),
    Choice("qwen3-moe", 128, 8, torch.bfloat16, {"weight_mode": "renormalized"}),
    Choice("mixtral-8x7b", 8, 2, torch.bfloat16, {"weight_mode": "softmax_of_chosen"}),
    Choice(
        "sigmoid",
        256,
        8,
        torch.float32,
        {"score": "sigmoid", "weight_mode": "renormalized", "epsilon": 1e-20},
    ),
    Choice("qwen3-next-80b-a3b", 512, 10, torch.bfloat16, {"weight_mode": "renormalized"}),
]


class TorchChain:
    """An operator of PyTorch for each step: scores, groups, top-k, weights, ids as int32."""

    name = "torch"

    def __init__(self, choice, bias):
        self.choice, self.bias = choice, bias
        self.groups = choice.options.get("num_groups", 0)

    def __call__(self, logits):
        options = self.choice.options
        scores = logits.float()
        of_chosen = options.get("weight_mode") == "softmax_of_chosen"
        if options.get("score") == "sigmoid":
            scores = scores.sigmoid()
        elif not of_chosen:
            scores = scores.softmax(-1)
        values = scores if self.bias is None else scores + self.bias
        if self.groups:
            values = self.masked(values)
        ids = values.topk(self.choice.top_k, -1).indices
        weights = scores.gather(1, ids)
        if of_chosen:
            weights = weights.softmax(-1)
        elif options.get("weight_mode") == "renormalized":
            weights = weights / (weights.sum(-1, keepdim=True) + options.get("epsilon", 0.0))
        return ids.int(), weights * options.get("scale", 1.0)

    def masked(self, values):
        options = self.choice.options
        groups = values.view(len(values), self.groups, -1)
        best = groups.topk(2, -1).values.sum(-1) if options.get("group_score") == "top2" else groups.amax(-1)
        kept = best.topk(options["kept_groups"], -1).indices
        dropped = torch.ones_like(best, dtype=torch.bool).scatter_(1, kept, False)
        return groups.masked_fill(dropped.unsqueeze(-1), float("-inf")).flatten(1)


class Operator:
    """This library, into tensors that are there before."""

    name = "tokenyard"

    def __init__(self, choice, bias):
        self.gate = torch.ops.tokenyard.gate_out.default
        self.choice = choice
        self.options = {**choice.options, "bias": bias}
        self.ids = self.weights = None

    def __call__(self, logits):
        if self.ids is None:
            chosen = tokenyard.gate(logits, self.choice.top_k, **self.options)
            self.ids, self.weights = chosen.ids, chosen.weights
        self.gate(logits, self.choice.top_k, ids=self.ids, weights=self.weights, **self.options)
        return self.ids, self.weights
