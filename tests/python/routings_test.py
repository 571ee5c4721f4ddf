"""Files of routings, each made by the test."""

import json

import numpy as np
import pytest

from tokenyard import routings

IDS = np.array([[3, 0], [1, 3], [2, 1]], np.int32)


def expect(got, want=IDS):
    assert got.dtype.kind == "i"
    np.testing.assert_array_equal(got, want)


def test_npy(tmp_path):
    np.save(tmp_path / "a.npy", IDS)
    got = routings.read(tmp_path / "a.npy")
    expect(got)
    assert got.dtype == np.int32


def test_safetensors(tmp_path):
    save_file = pytest.importorskip("safetensors.numpy").save_file
    path = tmp_path / "a.safetensors"
    save_file({"topk_ids": IDS, "topk_weights": IDS.astype(np.float32), "counts": IDS[0]}, path)
    expect(routings.read(str(path)))
    save_file({"layer.0": IDS, "layer.1": IDS + 1}, path)
    expect(routings.read(path, "layer.1"), IDS + 1)
    with pytest.raises(ValueError, match="name is None, expected one of what it holds: layer.0, layer.1"):
        routings.read(path)
    with pytest.raises(ValueError, match="name is layer.2, expected one of"):
        routings.read(path, "layer.2")


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"

    def write(**columns):
        __import__("pyarrow.parquet").parquet.write_table(pyarrow.table(columns), path)

    write(token=[0, 1, 2], topk_ids=IDS.tolist())
    expect(routings.read(path))
    write(topk_ids=pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(IDS.reshape(-1)), IDS.shape[1]))
    expect(routings.read(path))
    write(request=["a", "b"], topk_ids=[IDS[:1].tolist(), IDS[1:].tolist()], weights=[[0.5], [0.5]])
    expect(routings.read(path, "topk_ids"))
    with pytest.raises(ValueError, match=r"holds float64 of shape \[2, 1\], expected integers"):
        routings.read(path, "weights")
    write(topk_ids=[[1, 2], [1]])
    with pytest.raises(
        ValueError, match="tokens have 1, 2 experts, expected the same number each: pad them with -1"
    ):
        routings.read(path)


def write_lines(path, *records):
    path.write_text("\n".join(map(json.dumps, records)) + "\n\n")
    return path


def test_jsonl(tmp_path):
    path = write_lines(
        tmp_path / "a.jsonl",
        {"type": "meta", "top_k": 2},
        {"type": "route", "req_id": "r1", "token_idx": 0, "layer": 4, "topk_ids": IDS[0].tolist()},
        {"type": "route", "req_id": "r1", "token_idx": 1, "layer": 4, "topk_ids": IDS[1:].tolist()},
    )
    expect(routings.read(path))
    expect(routings.read(path, layer=4))
    with pytest.raises(ValueError, match="layer is 5, expected one of what it holds: 4"):
        routings.read(path, layer=5)
    with pytest.raises(ValueError, match="layer is None, expected one of what it holds: nothing of the kind"):
        routings.read(path, "ids")


def test_jsonl_of_several_layers(tmp_path):
    lines = [{"layer": layer, "topk_ids": (row + layer).tolist()} for row in IDS for layer in (0, 1)]
    path = write_lines(tmp_path / "a.jsonl", *lines)
    expect(routings.read(path, layer=1), IDS + 1)
    with pytest.raises(ValueError, match="layer is None, expected one of what it holds: 0, 1"):
        routings.read(path)
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"topk_ids": [0, 1]}\n')
    with pytest.raises(ValueError, match="layer is None, expected one of what it holds: 0, 1, None"):
        routings.read(path)


def test_says_what_is_wrong_with_a_file(tmp_path):
    with pytest.raises(ValueError, match='ends in ".csv", expected .npy, .safetensors, .parquet, .jsonl'):
        routings.read("a.csv")
    np.save(tmp_path / "a.npy", IDS[0])
    with pytest.raises(ValueError, match=r"holds int32 of shape \[2\], expected integers of shape"):
        routings.read(tmp_path / "a.npy")
    with pytest.raises(ValueError, match="layer is 0, expected None: only .jsonl knows layers"):
        routings.read(tmp_path / "a.npy", layer=0)
    with pytest.raises(ValueError, match="name is ids, expected None"):
        routings.read(tmp_path / "a.npy", "ids")
    (tmp_path / "a.jsonl").write_text('{"topk_ids": [1]}\nno\n')
    with pytest.raises(ValueError, match="a.jsonl:2: .* expected an object a line"):
        routings.read(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "record,says",
    [
        (7, "a.jsonl:1: holds 7, expected an object a line"),
        ({"topk_ids": 7}, "holds 7, expected a token's ids"),
        ({"topk_ids": [[1, 2], 7]}, "holds 7, expected a token's ids"),
        ({"topk_ids": [7, [1, 2]]}, r"holds \[7, \[1, 2\]\], expected a token's ids"),
        ({"topk_ids": [[1, [2]]]}, r"holds \[1, \[2\]\], expected a token's ids"),
        ({"topk_ids": [1, 2], "layer": [1]}, r"a.jsonl:1: layer is \[1\], expected a number or a name"),
        ({"topk_ids": [[1, None]]}, r"holds object of shape \[1, 2\], expected integers"),
    ],
)
def test_says_what_is_wrong_with_a_line(tmp_path, record, says):
    write_lines(tmp_path / "a.jsonl", record)
    with pytest.raises(ValueError, match=says):
        routings.read(tmp_path / "a.jsonl")


def test_names_the_package_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "safetensors.numpy", None)
    with pytest.raises(
        ImportError, match="a.safetensors needs the package safetensors: pip install safetensors"
    ):
        routings.read(tmp_path / "a.safetensors")
