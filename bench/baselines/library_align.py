"""This library from Python, through its C ABI: so that it is timed in one process with what is written in
Python. Mirrors include/tokenyard/tokenyard.h.
"""

import ctypes

import torch

TY_CUDA = 1
TY_INT32 = 0


class Device(ctypes.Structure):
    _fields_ = [("backend", ctypes.c_int32), ("ordinal", ctypes.c_int32)]


class AlignArgs(ctypes.Structure):
    _fields_ = (
        [("struct_size", ctypes.c_uint32), ("ids_dtype", ctypes.c_int32)]
        + [("topk_ids", ctypes.c_void_p), ("num_tokens", ctypes.c_int64), ("row_stride", ctypes.c_int64)]
        + [(name, ctypes.c_int32) for name in ("top_k", "num_experts", "block_size", "num_local_experts")]
        + [("expert_map", ctypes.c_void_p), ("capacity", ctypes.c_int64)]
        + [(name, ctypes.c_void_p) for name in ("sorted_pair_ids", "block_expert", "num_padded")]
        + [(name, ctypes.c_void_p) for name in ("counts", "offsets", "inverse", "block_rows", "num_dropped")]
        + [("path", ctypes.c_int32), ("linked", ctypes.c_int32)]
    )


class Library:
    """libtokenyard.so, loaded."""

    def __init__(self, path):
        self.abi = ctypes.CDLL(path)
        self.abi.ty_last_error.restype = ctypes.c_char_p
        self.device = Device(TY_CUDA, torch.cuda.current_device())

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.abi.ty_last_error().decode())

    def text(self, function, *args):
        line = ctypes.create_string_buffer(1024)
        self.check(function(self.device, *args, line, ctypes.c_size_t(len(line))))
        return line.value.decode()

    def describe(self):
        return self.text(self.abi.ty_device_describe)


class LibraryAlign:
    name = "tokenyard"
    order = "stable"
    padding_written = True

    def __init__(self, library, shape, out):
        self.library = library
        self.args = AlignArgs(
            struct_size=ctypes.sizeof(AlignArgs),
            ids_dtype=TY_INT32,
            num_tokens=shape.tokens,
            top_k=shape.top_k,
            num_experts=shape.experts,
            block_size=shape.block,
            capacity=shape.capacity,
            sorted_pair_ids=out.sorted_pair_ids.data_ptr(),
            block_expert=out.block_expert.data_ptr(),
            num_padded=out.num_padded.data_ptr(),
        )
        size = ctypes.c_size_t()
        self.check(library.abi.ty_align_workspace_size(library.device, self.reference(), ctypes.byref(size)))
        self.workspace = ctypes.c_void_p()
        if size.value == 0:
            return
        self.memory = torch.empty(size.value, dtype=torch.uint8, device=out.num_padded.device)
        self.check(
            library.abi.ty_workspace_create(
                library.device, self.pointer(self.memory), size, self.stream(), ctypes.byref(self.workspace)
            )
        )
        torch.cuda.synchronize()

    def __del__(self):
        self.library.abi.ty_workspace_destroy(self.workspace)

    def __call__(self, ids):
        self.args.topk_ids = ids.data_ptr()
        self.check(
            self.library.abi.ty_align(self.library.device, self.reference(), self.workspace, self.stream())
        )

    def path(self):
        """The path that a call takes: the word with which its explanation begins."""
        explanation = self.library.text(self.library.abi.ty_align_explain, self.reference())
        return explanation.replace(",", ":").split(":")[0]

    def check(self, status):
        self.library.check(status)

    def reference(self):
        return ctypes.byref(self.args)

    @staticmethod
    def pointer(tensor):
        return ctypes.c_void_p(tensor.data_ptr())

    @staticmethod
    def stream():
        return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
