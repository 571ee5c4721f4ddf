"""Gradients of the logits: the library's own, for PyTorch's autograd.

The functions go through here where there is a gradient to come, and else call their operators: what autograd
does around an operator in Python costs the host several times what the call does.
"""

import torch
from torch.autograd.function import once_differentiable


def choose(operator, logits, sizes, options):
    """operator(logits, *sizes, **options), of gate or route: ids, weights and whatever follows."""
    if _has_gradient(logits):
        return _Choice.apply(logits, operator, sizes, options)
    return operator(logits, *sizes, **options)


def lose(operator, logits, *others):
    """operator(logits, *others), of router_loss: a loss, what it is made of, and its gradient at the end."""
    if _has_gradient(logits):
        return _Loss.apply(logits, operator, *others)
    return operator(logits, *others)


def _has_gradient(logits):
    """What is no tensor has none: the operator refuses it."""
    return torch.is_grad_enabled() and getattr(logits, "requires_grad", False)


class _Choice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, operator, sizes, options):
        outputs = operator(logits, *sizes, **options)
        ctx.save_for_backward(logits, outputs[0])
        ctx.top_k, ctx.options = sizes[0], options
        ctx.mark_non_differentiable(outputs[0], *outputs[2:])
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx, _ids, weights_grad, *_others):
        logits, ids = ctx.saved_tensors
        options = ctx.options
        if options.get("replicas") is not None:
            raise RuntimeError(
                "gate_backward: replicas is given, expected None: the ids that they rename do not say which "
                "logits were chosen; train without replicas"
            )
        if options.get("shared_mode") == "of_sum":
            # A shared expert's weight passes its gradient on to the weights that it is a sum of.
            of_chosen, of_shared = weights_grad[:, : ctx.top_k], weights_grad[:, ctx.top_k :]
            of_chosen = of_chosen + options.get("shared_weight", 1.0) * of_shared.sum(dim=1, keepdim=True)
            weights_grad = torch.cat([of_chosen, of_shared], dim=1)
        of_weights = {
            name: options[name] for name in ("score", "weight_mode", "epsilon", "scale") if name in options
        }
        logits_grad = torch.ops.tokenyard.gate_backward(
            weights_grad.contiguous(), logits, ids, ctx.top_k, **of_weights
        )
        return logits_grad, None, None, None


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, operator, *others):
        loss, *parts = operator(logits, *others)
        ctx.save_for_backward(parts[-1])
        ctx.mark_non_differentiable(*parts)
        ctx.num_others = len(others)
        return loss, *parts

    @staticmethod
    @once_differentiable
    def backward(ctx, loss_grad, *_of_parts):
        (logits_grad,) = ctx.saved_tensors
        scaled = loss_grad * logits_grad.float()  # a scale of 65536 is no float16
        return scaled.to(logits_grad.dtype), None, *[None] * ctx.num_others
