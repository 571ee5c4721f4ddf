"""The package as it is installed."""

import doctest
import importlib
import pathlib
import re
import subprocess
import sys

import pytest

import tokenyard


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_is_imported_without_a_framework():
    program = """
import sys
sys.modules.update(torch=None, numpy=None)
import tokenyard
assert tokenyard.__version__.count(".") == 2
assert "align" in dir(tokenyard)
tokenyard.align
"""
    result = run(program)
    assert result.returncode == 1
    assert "ImportError: tokenyard.ops needs PyTorch 2.10 or newer: pip install torch" in result.stderr


def test_leaves_torch_alone_until_it_is_needed():
    result = run("import sys, tokenyard; sys.exit('torch' in sys.modules)")
    assert result.returncode == 0, result.stderr


def test_says_what_it_has_not():
    with pytest.raises(AttributeError, match="module 'tokenyard' has no attribute 'sort'"):
        tokenyard.sort


@pytest.mark.parametrize("name", tokenyard.__all__)
def test_has_what_it_lists(name):
    assert getattr(tokenyard, name) is not None


@pytest.mark.parametrize("name", ["dlpack", "ops", "plot", "routings", "training"])
def test_examples(name):
    if name == "dlpack":
        pytest.importorskip("tvm_ffi")
    if name == "plot":
        pytest.importorskip("matplotlib").use("Agg")
    result = doctest.testmod(importlib.import_module(f"tokenyard.{name}"))
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("name", ["README.md", "docs/python.md", "docs/integrate-training.md"])
def test_examples_in_documents(name):
    pytest.importorskip("tvm_ffi")
    text = (pathlib.Path(__file__).parents[2] / name).read_text(encoding="utf-8")
    session = "".join(re.findall(r"^```pycon\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    test = doctest.DocTestParser().get_doctest(session, {}, name, name, 0)
    result = doctest.DocTestRunner().run(test)
    assert result.attempted > 0 and result.failed == 0
