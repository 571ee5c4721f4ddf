"""The library itself, libtokenyard.so, as far as Python needs it without any framework."""

import ctypes
import functools
import pathlib

FOLDER = pathlib.Path(__file__).parent / "lib"

BACKENDS = {"cpu": 0, "cuda": 1, "hip": 2}


class Device(ctypes.Structure):
    """ty_device of tokenyard.h."""

    _fields_ = [("backend", ctypes.c_int32), ("ordinal", ctypes.c_int32)]


@functools.lru_cache(maxsize=None)
def load():
    """The C ABI."""
    library = ctypes.CDLL(str(FOLDER / "libtokenyard.so"))
    library.ty_version.restype = ctypes.c_char_p
    library.ty_last_error.restype = ctypes.c_char_p
    library.ty_align_capacity.restype = ctypes.c_int64
    library.ty_align_capacity.argtypes = [ctypes.c_int64, ctypes.c_int32, ctypes.c_int32]
    library.ty_device_describe.argtypes = [Device, ctypes.c_char_p, ctypes.c_size_t]
    return library


def version():
    """ "major.minor.patch" of the library."""
    return load().ty_version().decode()


def align_capacity(num_pairs, experts, block_size):
    """Slots of sorted_pair_ids: enough for every routing, a multiple of block_size.

    >>> align_capacity(num_pairs=8, experts=3, block_size=4)
    20
    """
    slots = load().ty_align_capacity(num_pairs, experts, block_size)
    if slots < 0:
        raise ValueError(
            f"align_capacity: {num_pairs} pairs of {experts} experts in blocks of {block_size}, expected "
            "at least 0, 1 to 4096 and 1, and slots that fit in int32: use a smaller block_size or split the batch"
        )
    return slots


def devices(backend):
    """One line on each device of a backend ("cpu", "cuda" or "hip"), and why there is none, or ""."""
    library = load()
    count = library.ty_device_count(BACKENDS[backend])
    if count == 0:
        return [], library.ty_last_error().decode()
    return [_description(Device(BACKENDS[backend], ordinal)) for ordinal in range(count)], ""


def _description(device):
    line = ctypes.create_string_buffer(256)
    if load().ty_device_describe(device, line, len(line)) != 0:
        return load().ty_last_error().decode()
    return line.value.decode()
