"""Tokenyard: routing kernels for Mixture-of-Experts layers.

``tokenyard.gate``, ``align``, ``route`` and the functions for a router's training work on PyTorch's tensors,
as do ``torch.ops.tokenyard.*``, which are there once ``tokenyard.ops`` was imported. PyTorch is imported with
the first of them, not with this package.
"""

import importlib

from tokenyard.library import version

__version__ = version()

_HOME = {
    "AlignedOrder": "ops",
    "ChosenExperts": "ops",
    "align": "ops",
    "align_capacity": "library",
    "gate": "ops",
    "route": "ops",
    "LoadStatistics": "training",
    "RouterLoss": "training",
    "balance_step": "training",
    "load_statistics": "training",
    "router_loss": "training",
}
_MODULES = ("library", "ops", "training")

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name):
    if name in _HOME:
        return getattr(importlib.import_module(f"tokenyard.{_HOME[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"tokenyard.{name}")
    raise AttributeError(f"module 'tokenyard' has no attribute '{name}'")


def __dir__():
    return __all__
