"""What a router's training needs beside the gradient of gate's weights: losses, and balancing by a bias.

The formulas and their sources are in docs/training.md.
"""

from typing import NamedTuple, Optional

import torch

import tokenyard

from tokenyard import gradients

tokenyard.ops  # registers the operators


class RouterLoss(NamedTuple):
    """What router_loss says, on the device of the logits."""

    loss: torch.Tensor
    """[] float32, the sum of both losses; the one that has a gradient"""
    balance: torch.Tensor
    """[] float32, coefficient included"""
    z: torch.Tensor
    """[] float32, likewise"""
    counts: Optional[torch.Tensor] = None
    """[num_sequences, num_experts] int32, how often each expert was chosen, where ids were counted"""


def router_loss(
    logits,
    ids=None,
    *,
    top_k=None,
    counts=None,
    sequence_offsets=None,
    score="softmax",
    balance_coefficient=0.0,
    z_coefficient=0.0,
):
    """The balance loss over sequences, or over the whole batch, and the z-loss, with their gradient.

    logits: [num_tokens, num_experts] float32, bfloat16 or float16, as for gate.
    ids: [num_tokens, columns] int32 or int64, gate's.
    top_k: how many of the columns were chosen, the others being shared experts; None: all.
    counts: [num_sequences, num_experts] int32 instead of ids, also sums over several devices.
    sequence_offsets: [num_sequences + 1] int32: sequence s is tokens sequence_offsets[s] to
        sequence_offsets[s + 1] - 1; tokens in none are padding. None: one sequence, of all tokens.
    score: "softmax", "sigmoid" or "sqrt_softplus": what the balance loss takes for an expert's probability,
        over the sum of a token's.
    balance_coefficient, z_coefficient: factors; 0 leaves a loss out.

    Returns RouterLoss. The gradient is made with the losses, in one pass over the logits. Raises RuntimeError
    where an argument is not as above, in a sentence that says what was expected and what to do.

    >>> import torch, tokenyard
    >>> logits = torch.tensor([[2.0, 0.0], [2.0, 0.0]], requires_grad=True)
    >>> ids = torch.tensor([[0], [0]])
    >>> router = tokenyard.router_loss(logits, ids, balance_coefficient=0.01)
    >>> router.balance
    tensor(0.0176)
    >>> router.counts
    tensor([[2, 0]], dtype=torch.int32)
    >>> router.loss.backward()
    >>> logits.grad
    tensor([[ 0.0010, -0.0010],
            [ 0.0010, -0.0010]])
    """
    loss, losses, counted, _ = gradients.lose(
        torch.ops.tokenyard.router_loss,
        logits,
        ids,
        top_k,
        counts,
        sequence_offsets,
        score,
        balance_coefficient,
        z_coefficient,
    )
    return RouterLoss(loss, *losses.unbind(), counted if ids is not None else None)


def balance_step(bias, counts, rate=0.001):
    """Moves a bias that experts are chosen by against their load: bias += rate * sign(mean count - count).

    bias: [num_experts] float32, changed in place.
    counts: [num_experts] int32 or int64, the pairs of each expert, as gate counts them.

    >>> import torch, tokenyard
    >>> bias = torch.zeros(3)
    >>> tokenyard.balance_step(bias, torch.tensor([5, 3, 1]), rate=0.5)
    >>> bias
    tensor([-0.5000,  0.0000,  0.5000])
    """
    torch.ops.tokenyard.balance_step(bias, counts, rate)


class LoadStatistics(NamedTuple):
    """How even a load is: [] float32 each, on the device of the counts."""

    max: torch.Tensor
    """the highest count over the mean; 1 is even"""
    min: torch.Tensor
    """the lowest count over the mean; 1 is even"""
    entropy: torch.Tensor
    """of the experts' shares, over that of equal shares; 1 is even"""
    idle: torch.Tensor
    """experts without a pair, over all; 0 is even"""


def load_statistics(counts):
    """How even a load is. counts: as for balance_step. Nothing waits for the device.

    >>> import torch, tokenyard
    >>> load = tokenyard.load_statistics(torch.tensor([6, 2, 0, 0]))
    >>> load.max.item(), load.idle.item()
    (3.0, 0.5)
    """
    return LoadStatistics(*torch.ops.tokenyard.load_statistics(counts).unbind())
