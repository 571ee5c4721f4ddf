"""Gradients of the logits, for PyTorch's autograd: the library's own, through operators."""

import torch

from tokenyard import schema


def _save_choice(operator):
    def setup_context(ctx, inputs, output):
        ctx.call = schema.named(operator, inputs)
        ctx.num_inputs = len(inputs)
        ctx.save_for_backward(ctx.call.logits, output[0])
        ctx.call.logits = None

    return setup_context


def _weights_backward(ctx, _ids, weights_grad, *_others):
    call = ctx.call
    logits, ids = ctx.saved_tensors
    if call.replicas is not None:
        raise RuntimeError(
            "gate_backward: replicas is given, expected None: the ids that they rename do not say which "
            "logits were chosen; train without replicas"
        )
    if call.shared_mode == "of_sum" and call.num_shared_experts > 0:
        # A shared expert's weight passes its gradient on to the weights that it is a sum of.
        of_chosen, of_shared = weights_grad.split([call.top_k, call.num_shared_experts], dim=1)
        of_chosen = of_chosen + call.shared_weight * of_shared.sum(dim=1, keepdim=True)
        weights_grad = torch.cat([of_chosen, of_shared], dim=1)
    logits_grad = torch.ops.tokenyard.gate_backward(
        weights_grad.contiguous(),
        logits,
        ids,
        call.top_k,
        call.score,
        call.weight_mode,
        call.epsilon,
        call.scale,
    )
    return logits_grad, *[None] * (ctx.num_inputs - 1)


for _name in ("gate", "gate_with_counts", "route", "route_with_details"):
    torch.library.register_autograd(
        f"tokenyard::{_name}",
        _weights_backward,
        setup_context=_save_choice(getattr(torch.ops.tokenyard, _name).default),
    )


def _no_second_gradient(ctx, _logits_grad):
    raise RuntimeError(
        "gate_backward: a gradient of the gradient is asked for, expected one of the weights alone: there is no "
        "formula for it; leave create_graph out"
    )


torch.library.register_autograd("tokenyard::gate_backward", _no_second_gradient)


def _save_gradient(ctx, inputs, output):
    loss, losses, counts, logits_grad = output
    ctx.num_inputs = len(inputs)
    ctx.save_for_backward(logits_grad)
    ctx.mark_non_differentiable(losses, counts, logits_grad)


def _loss_backward(ctx, loss_grad, *_others):
    (logits_grad,) = ctx.saved_tensors
    return loss_grad * logits_grad, *[None] * (ctx.num_inputs - 1)


torch.library.register_autograd("tokenyard::router_loss", _loss_backward, setup_context=_save_gradient)
