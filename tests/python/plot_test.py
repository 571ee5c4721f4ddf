"""Pictures hold what they are to show."""

import pathlib
import runpy
import xml.etree.ElementTree

import pytest
import torch

pytest.importorskip("matplotlib").use("Agg")
from tokenyard import plot  # noqa: E402

IDS = torch.tensor([[2, 0], [2, 1], [0, 2], [2, -1]])


def test_order():
    axes = plot.order(IDS, num_experts=4, block_size=3)
    texts = {
        text.get_text(): (int(text.get_position()[0]), int(text.get_position()[1])) for text in axes.texts
    }
    assert texts == {
        "0.1": (0, 0),
        "2.0": (1, 0),
        "1.1": (0, 1),
        "0.0": (0, 2),
        "1.0": (1, 2),
        "2.1": (2, 2),
        "3.0": (0, 3),
    }
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "expert 0",
        "expert 1",
        "expert 2",
        "expert 2",
    ]
    colours = [patch.get_facecolor() for patch in axes.patches]
    assert len(colours) == 12 and len(set(colours)) == 4  # three experts and padding
    assert colours[6] == colours[9] != colours[10] == colours[2]


def test_order_of_nothing():
    assert not plot.order(torch.full((3, 2), -1), num_experts=4, block_size=8).patches


def test_order_is_for_small_problems():
    with pytest.raises(ValueError, match="plot.order: 2000 slots, expected at most 1024"):
        plot.order(torch.zeros(1000, 2, dtype=torch.int32), 4, 1)


def test_load_draws_into_given_axes(device):
    axes = plot.plt.subplots()[1]
    assert plot.load(IDS.to(device), num_experts=4, axes=axes) is axes
    assert [patch.get_height() for patch in axes.patches] == [2, 1, 4, 0]
    assert axes.get_title() == "most: 2.29 x mean; idle: 1 of 4"
    assert axes.get_legend_handles_labels()[1] == ["mean 1.8"]


def test_pictures_of_the_documents(tmp_path, monkeypatch):
    script = pathlib.Path(__file__).parents[2] / "examples/pictures.py"
    monkeypatch.setattr("sys.argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    for name, marks in (("order.svg", 12), ("load.svg", 2 * 64)):
        paths = xml.etree.ElementTree.parse(tmp_path / name).iter("{http://www.w3.org/2000/svg}g")
        patches = [group for group in paths if group.get("id", "").startswith("patch_")]
        assert len(patches) >= marks
