"""python -m tokenyard.env: what a report of a mistake needs to say about a machine."""

import importlib
import importlib.metadata
import platform
import sys

from tokenyard import library

PACKAGES = ("torch", "triton", "numpy", "apache-tvm-ffi", "vllm", "sglang", "sgl-kernel")


def describe():
    """(name, value) pairs."""
    yield "tokenyard", f"{library.version()} in {library.FOLDER.parent}"
    for backend in library.BACKENDS:
        devices, reason = library.devices(backend)
        for ordinal, device in enumerate(devices):
            yield f"{backend}:{ordinal}", device
        if not devices:
            yield backend, reason
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "system", f"{platform.platform()}, {' '.join(platform.libc_ver())}"
    for package in PACKAGES:
        try:
            yield package, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            yield package, "not installed"
    yield from _torch()


def _torch():
    """How PyTorch was built, and whether the operators load."""
    try:
        import torch
    except ImportError:
        return
    yield "torch's CUDA", torch.version.cuda or "none"
    yield "torch's HIP", torch.version.hip or "none"
    try:
        importlib.import_module("tokenyard.ops")
        yield "operators", "loaded"
    except (ImportError, OSError) as error:
        yield "operators", str(error)


def main():
    for name, value in describe():
        print(f"{name:>14}  {value}")


if __name__ == "__main__":
    main()
