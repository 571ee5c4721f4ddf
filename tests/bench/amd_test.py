"""Counting in what clang and its tools print of a kernel."""

import contextlib
import io
import json
import os
import tempfile
import types
import unittest

import amd

TILE = (
    "void tokenyard::port::hip::run<tokenyard::align::Tile<tokenyard::align::PlainIds, false, 256, 8>>"
    "(tokenyard::align::Tile<tokenyard::align::PlainIds, false, 256, 8>)"
)


def remark(what, value):
    return f"src/port/hip.hpp:235:1: remark:     {what}: {value} [-Rpass-analysis=kernel-resource-usage]"


def frames(*functions):
    return [{"FunctionName": name} for name in functions]


class Reading(unittest.TestCase):
    def test_resources_belong_to_the_function_above_them(self):
        said = [remark("Function Name", "_Za"), remark("VGPRs", 18), remark("Dynamic Stack", "False")]
        said += ["  235 | __global__ void", remark("Function Name", "_Zb"), remark("LDS Size [bytes/block]", 64)]
        self.assertEqual(amd.resources("\n".join(said)), {"_Za": {"vgprs": 18}, "_Zb": {"lds_bytes": 64}})

    def test_instructions_have_addresses(self):
        listing = "\n0000000000001100 <_Za>:\n\ts_load_dword s4, s[0:1], 0x0      // 000000001100: C0020100 00000000\n"
        listing += "\tds_add_u32 v3, v4                // 00000000110C: D8000000 00000403\n"
        self.assertEqual(amd.instructions(listing), {"_Za": [(0x1100, "s_load_dword"), (0x110C, "ds_add_u32")]})

    def test_names_are_those_of_our_kernels(self):
        self.assertEqual(amd.short(TILE), "Tile<PlainIds, false, 256, 8>")
        self.assertIsNone(amd.short("tokenyard::port::empty_kernel()"))

    def test_kinds(self):
        kinds = {"v_add_u32_e32": "valu", "s_add_i32": "salu", "s_waitcnt": "control", "s_load_dwordx2": "scalar_memory"}
        kinds.update({"ds_add_u32": "lds", "global_load_dword": "vmem", "s_cbranch_scc1": "control"})
        self.assertEqual({name: amd.kind(name) for name in kinds}, kinds)
        with self.assertRaises(SystemExit):
            amd.kind("image_load")

    def test_an_instruction_belongs_to_what_the_kernels_function_calls(self):
        run, own = "run<Tile<PlainIds>>", "operator()<Thread>"
        self.assertEqual(amd.part_of(frames("shfl", "operator()", "rank<Thread>", own, run)), "rank")
        self.assertEqual(amd.part_of(frames(own, run)), "itself")
        self.assertEqual(amd.part_of(frames(run)), "launch")


class Table(unittest.TestCase):
    def test_adds_up_what_every_pair_goes_through(self):
        row = {"card": "gfx942", "kernel": "Tile<PlainIds, false, 256, 8>", "vgprs": 38, "sgprs": 58, "agprs": 0}
        row.update({"lds_bytes": 20592, "vgprs_spilled": 0, "sgprs_spilled": 2, "waves_per_simd": 3})
        row["parts"] = {"count": {"valu": 20, "salu": 7, "lds": 4}, "rank": {"valu": 9, "vmem": 1, "control": 5}}
        context = {"compiler": "clang", "date": "2026-01-02T00:00:00Z", "commit": "abc", "command": "amd.py count"}
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "amd.json")
            with open(file, "w", encoding="utf-8") as out:
                json.dump({"context": context, "results": [row]}, out)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                amd.table(types.SimpleNamespace(results=file, card=None))
        lines = said.getvalue().splitlines()
        self.assertEqual(lines[2], "| gfx942 | Tile<256, 8> | 38 (0) | 58 (2) | 20592 | 3 | 20, 7, 4, 0 | 9, 0, 0, 1 |")
        self.assertEqual(lines[-1], "clang; 2026-01-02; commit abc; `amd.py count`")


if __name__ == "__main__":
    unittest.main()
