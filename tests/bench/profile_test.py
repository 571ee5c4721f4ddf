"""Reading the profiler's report, and the picture made from it."""

import os
import tempfile
import unittest

import ncu

STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def report(*kernels):
    """As `ncu --csv --page raw` writes it: what it says meanwhile, names, units, a line a kernel."""
    names = ["ID", "Kernel Name", "Block Size", "Grid Size", *dict.fromkeys(name for one in kernels for name in one)]
    quoted = [names, [""] * len(names)]
    for i, one in enumerate(kernels):
        fixed = {"ID": str(i), "Kernel Name": "run", "Block Size": "(256, 1, 1)", "Grid Size": "(128, 1, 1)"}
        quoted.append([{**fixed, **one}.get(name, "n/a") for name in names])
    lines = [",".join(f'"{cell}"' for cell in cells) for cells in quoted]
    return "\n".join(["==PROF== Connected to process 7", *lines, ""])


class Report(unittest.TestCase):
    def test_counts_are_read_by_our_names(self):
        (row,) = ncu.parse(
            report(
                {
                    "gpu__time_duration.sum": "3,456",
                    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "1,000",
                    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "250",
                    "sm__warps_active.avg.pct_of_peak_sustained_active": "23.5",
                }
            )
        )
        kernel = ncu.kernel(row)
        self.assertEqual(kernel["duration_ns"], 3456)
        self.assertEqual(kernel["sectors_per_load_request"], 4)
        self.assertEqual(kernel["occupancy_percent"], 23.5)
        self.assertEqual(kernel["grid"], "(128, 1, 1)")

    def test_what_is_missing_or_not_a_number_is_null(self):
        (row,) = ncu.parse(report({"dram__bytes_read.sum": "nan", "dram__bytes_write.sum": "(!) n/a"}))
        kernel = ncu.kernel(row)
        for name in ("dram_read_bytes", "dram_written_bytes", "duration_ns", "sectors_per_store_request"):
            self.assertIsNone(kernel[name], name)
        self.assertEqual(kernel["stalls"], {})
        self.assertEqual(ncu.peaks([row]), {"dram": None, "l2": None})

    def test_stalls_are_shares_of_waiting_the_largest_first(self):
        cycles = {"barrier": "1", "long_scoreboard": "2.5", "wait": "0.5", "selected": "9", "membar": "nan"}
        (row,) = ncu.parse(report({STALLED.format(reason): count for reason, count in cycles.items()}))
        self.assertEqual(
            list(ncu.stalls(row).items()), [("long_scoreboard", 0.625), ("barrier", 0.25), ("wait", 0.125)]
        )

    def test_peaks_come_from_the_first_kernel_that_has_them(self):
        rows = ncu.parse(
            report(
                {"dram__bytes.sum.peak_sustained": "n/a"},
                {"dram__bytes.sum.peak_sustained": "2,560", "dram__cycles_elapsed.avg.per_second": "1,000"},
            )
        )
        self.assertEqual(len(rows), 2)
        self.assertEqual(ncu.peaks(rows), {"dram": 2560000, "l2": None})

    def test_a_report_without_a_table_has_no_kernels(self):
        self.assertEqual(ncu.parse("==ERROR== no kernels were profiled\n"), [])

    def test_cases_are_a_path_and_sizes(self):
        self.assertEqual(list(ncu.cases(["grid:1,2", "split:3"])), [("grid", 1), ("grid", 2), ("split", 3)])
        for wrong in ("grid", "grid:", "grid:many"):
            with self.assertRaises(SystemExit):
                list(ncu.cases([wrong]))


try:
    import plot
    import roofline
except ImportError:
    roofline = None


@unittest.skipIf(roofline is None, "no matplotlib or numpy")
class Roofline(unittest.TestCase):
    def row(self, tokens):
        shape = {"tokens": tokens, "top_k": 8, "experts": 256, "block": 128}
        return {**shape, "us_p50": 2.0, "floor_us": 0.8}

    def test_a_call_moves_its_ids_and_outputs_once(self):
        slots = 16384 * 8 + 256 * 127  # room for the worst routing; whole blocks as it is
        self.assertEqual(roofline.bytes_moved(self.row(16384)), 4 * (16384 * 8 + slots + slots // 128 + 1))

    def test_bars_name_the_largest_reasons_and_add_up_to_one(self):
        stalls = {f"reason{i}": share for i, share in enumerate((0.3, 0.2, 0.15, 0.1, 0.1, 0.1, 0.05))}
        kernels = [{"stalls": stalls}, {"stalls": {}}]
        bars = roofline.stall_bars([{"path": "split", "tokens": 64, "kernels": kernels}])
        self.assertEqual([label for label, _ in bars], ["split 1, 64", "split 2, 64"])
        self.assertAlmostEqual(sum(bars[0][1].values()), 1)
        self.assertAlmostEqual(bars[0][1]["other"], 0.15)

    def test_draws_without_what_the_profiler_lacked(self):
        lines = {"tokenyard": {tokens: self.row(tokens) for tokens in (1, 1024)}}
        context = {"device": "a card", "toolkit": "ncu", "date": "2026-01-02", "commit": "abc"}
        results = [{"path": "grid", "tokens": 1024, "kernels": [{"stalls": {"barrier": 1.0}}]}]
        for peaks in ({"dram": None, "l2": None}, {"dram": 4e12, "l2": 8e12}):
            figure = roofline.draw(lines, {**context, "peak_bytes_per_s": peaks}, results)
            roofs = sum(peak is not None for peak in peaks.values())
            self.assertEqual(len(figure.axes[0].lines), 1 + 1 + roofs)  # empty kernel, ours
            with tempfile.TemporaryDirectory() as folder:
                plot.save(figure, os.path.join(folder, "a"))
                self.assertGreater(os.path.getsize(os.path.join(folder, "a.png")), 1000)


if __name__ == "__main__":
    unittest.main()
