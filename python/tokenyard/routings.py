"""Recorded routings from the files in which people keep them: [num_tokens, top_k] ids as a numpy array.

>>> import numpy, os, tempfile
>>> from tokenyard import routings
>>> path = os.path.join(tempfile.mkdtemp(), "ids.npy")
>>> numpy.save(path, [[2, 0], [2, 1]])
>>> routings.read(path)
array([[2, 0],
       [2, 1]])
"""

import importlib
import json
import pathlib

import numpy as np


def read(path, name=None, layer=None):
    """Expert ids of each token, [num_tokens, top_k], of the integer type in the file.

    path: by its ending,
        .npy: an array;
        .safetensors: a tensor; needs the package safetensors;
        .parquet: a list column, a row a token, or a list of lists, a row a request; needs pyarrow;
        .jsonl: what loggers of vLLM's router write: an object a line, with "topk_ids" of one token or of
            several, and perhaps a "layer". Lines without "topk_ids" are skipped.
    name: of the tensor or column; may be left out where only one can be it. In .jsonl the key, "topk_ids" if
        left out.
    layer: in .jsonl, the one to read; may be left out where there is one.

    Raises ValueError where the file does not hold that, ImportError where a package is missing.
    """
    path = pathlib.Path(path)
    readers = {".npy": _npy, ".safetensors": _safetensors, ".parquet": _parquet, ".jsonl": _jsonl}
    if path.suffix not in readers:
        raise ValueError(
            f"{path}: ends in \"{path.suffix}\", expected {', '.join(readers)}: convert it to one of them"
        )
    if layer is not None and path.suffix != ".jsonl":
        raise ValueError(f"{path}: layer is {layer}, expected None: only .jsonl knows layers, use name")
    ids = readers[path.suffix](path, *((name, layer) if path.suffix == ".jsonl" else (name,)))
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"{path}: holds {ids.dtype} of shape {list(ids.shape)}, expected integers of shape "
            "[num_tokens, top_k]: write each token's ids in a row"
        )
    return ids


def _npy(path, name):
    if name is not None:
        raise ValueError(f"{path}: name is {name}, expected None: an .npy holds one array")
    return np.load(path, allow_pickle=False)


def _safetensors(path, name):
    safetensors = _import("safetensors.numpy", path, "safetensors")
    tensors = safetensors.load_file(path)
    matrices = [key for key, tensor in tensors.items() if tensor.ndim == 2 and tensor.dtype.kind in "iu"]
    return tensors[_choose(path, "name", name, matrices)]


def _parquet(path, name):
    parquet = _import("pyarrow.parquet", path, "pyarrow")
    types = _import("pyarrow.types", path, "pyarrow")
    schema = parquet.read_schema(path)
    are_lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    lists = [field.name for field in schema if any(is_one(field.type) for is_one in are_lists)]
    name = _choose(path, "name", name, lists)
    rows = parquet.read_table(path, columns=[name])[name].to_pylist()
    return _rows(path, rows)


def _jsonl(path, name, layer):
    name = name or "topk_ids"
    layers = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}:{number}: {error}, expected an object a line") from None
            if not isinstance(record, dict):
                raise ValueError(f"{path}:{number}: holds {record!r}, expected an object a line")
            if name not in record:
                continue
            of_layer = record.get("layer")
            if isinstance(of_layer, (list, dict)):
                raise ValueError(f"{path}:{number}: layer is {of_layer}, expected a number or a name")
            layers.setdefault(of_layer, []).append(record[name])
    return _rows(path, layers[_choose(path, "layer", layer, list(layers))])


def _rows(path, rows):
    """One array of rows, each a token's ids or a list of such."""
    tokens = []
    for row in rows:
        tokens += row if isinstance(row, list) and row and isinstance(row[0], list) else [row]
    for token in tokens:
        if not isinstance(token, list) or any(isinstance(expert, (list, dict)) for expert in token):
            raise ValueError(f"{path}: holds {token!r}, expected a token's ids: write them as a list, also one")
    lengths = {len(token) for token in tokens}
    if len(lengths) > 1:
        raise ValueError(
            f"{path}: tokens have {', '.join(map(str, sorted(lengths)))} experts, expected "
            "the same number each: pad them with -1"
        )
    return np.array(tokens)


def _choose(path, argument, wanted, there):
    """What was asked for, or the only one there is."""
    if wanted is None and len(there) == 1:
        return there[0]
    if wanted is not None and wanted in there:
        return wanted
    listed = ", ".join(map(str, there)) or "nothing of the kind"
    raise ValueError(f"{path}: {argument} is {wanted}, expected one of what it holds: {listed}")


def _import(module, path, package):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{path} needs the package {package}: pip install {package}") from error
