"""Merging, printing and drawing result files."""

import os
import tempfile
import unittest
import xml.etree.ElementTree

import best
import merge
import resultfile
import table

CONTEXT = {
    "device": "cuda: a card",
    "driver": "1.2",
    "sm_clock_mhz": 1980,
    "toolkit": "CUDA 13",
    "commit": "abc",
    "date": "2026-01-02T03:04:05Z",
    "timer": "events",
    "command": "tokenyard bench align --json 0.json",
}


def row(impl="tokenyard", tokens=64, us=2.0, **others):
    fields = {
        "op": "align",
        "impl": impl,
        "path": "grid" if impl == "tokenyard" else None,
        "tokens": tokens,
        "top_k": 8,
        "experts": 256,
        "block": 128,
        "dtype": "int32",
        "distribution": "uniform",
        "order": "stable",
        "padding_written": True,
        "cold": False,
        "linked": False,
        "floor_us": 0.8,
        "us_p20": us - 0.1,
        "us_p50": us,
        "us_p80": us + 0.1,
        "host_ns": 5000,
        "verified": True,
    }
    return {**fields, **others}


def part(rows, name="0.json", **context):
    return (name, {**CONTEXT, **context}, rows)


class Best(unittest.TestCase):
    def test_ranks_each_case_for_itself(self):
        rows = [row("a", us=3.0), row("b", us=2.0), row("a", tokens=1, us=1.0), row("c", us=2.5)]
        ranked = [[r["impl"] for r in case] for case in best.by_case(rows).values()]
        self.assertEqual(ranked, [["b", "c", "a"], ["a"]])


class Merge(unittest.TestCase):
    def test_keeps_every_row_every_command_and_the_lowest_clock(self):
        context, rows = merge.merge(
            [
                part([row(), row("article")], sm_clock_mhz=1980),
                part([row(tokens=1)], sm_clock_mhz=1755, command="second"),
                part([row(cold=True), row(linked=True)], sm_clock_mhz=None, command="third"),
            ]
        )
        self.assertEqual(rows, [row(), row("article"), row(tokens=1), row(cold=True), row(linked=True)])
        self.assertEqual(context["command"], [CONTEXT["command"], "second", "third"])
        self.assertEqual(context["sm_clock_mhz"], 1755)
        self.assertEqual(context["device"], CONTEXT["device"])

    def test_refuses_parts_of_different_builds_or_cards(self):
        for field in ("device", "driver", "toolkit", "commit", "timer"):
            with self.assertRaises(SystemExit) as refused:
                merge.merge([part([row()]), part([row(tokens=1)], name="1.json", **{field: "another"})])
            self.assertIn(f"1.json: {field} is another, expected {CONTEXT[field]} as in 0.json", str(refused.exception))

    def test_refuses_a_case_that_is_measured_twice(self):
        with self.assertRaises(SystemExit) as refused:
            merge.merge([part([row()]), part([row(us=3.0)])])
        self.assertIn("tokenyard has two rows for 64 tokens", str(refused.exception))
        merge.merge([part([row()]), part([row(path="everywhere")]), part([row(dtype="int64")])])

    def test_what_is_written_can_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "a.json")
            resultfile.write(name, CONTEXT, [row()])
            self.assertEqual(resultfile.read(name), (CONTEXT, [row()]))
            with open(name, "w", encoding="utf-8") as file:
                file.write("[]")
            with self.assertRaises(SystemExit) as refused:
                resultfile.read(name)
            self.assertIn(f"{name}: is no result file", str(refused.exception))


class Table(unittest.TestCase):
    def lines(self, rows):
        return list(table.tables(CONTEXT, rows))

    def test_puts_implementations_side_by_side_ours_first(self):
        lines = self.lines(
            [row("two_kernel", us=6.0, order="any"), row(us=2.0), row("cub_radix", us=8.0, padding_written=False)]
        )
        self.assertIn("| tokenyard | two_kernel\\* | cub_radix † | best other ÷ ours | empty kernel |", lines[0])
        self.assertEqual(lines[2], "| 64 | 8 of 256 | 128 | uniform | **2.00** | 6.00 | 8.00 | 3.00 | 0.80 |")
        self.assertIn("\\* An expert's pairs stand in any order.", lines)
        self.assertIn("† Slots without a pair are not written.", lines)

    def test_shows_where_we_lose(self):
        lines = self.lines([row(us=2.0), row("article", us=1.0)])
        self.assertEqual(lines[2], "| 64 | 8 of 256 | 128 | uniform | 2.00 | **1.00** | 0.50 | 0.80 |")

    def test_leaves_a_cell_empty_where_an_implementation_was_not_measured(self):
        lines = self.lines([row(), row("article", us=4.0), row(tokens=1), row("cub_radix", tokens=1, us=5.0)])
        self.assertEqual(lines[2], "| 64 | 8 of 256 | 128 | uniform | **2.00** | 4.00 |  | 2.00 | 0.80 |")
        self.assertEqual(lines[3], "| 1 | 8 of 256 | 128 | uniform | **2.00** |  | 5.00 | 2.50 | 0.80 |")

    def test_lists_the_rest_with_path_and_spread(self):
        lines = self.lines([row(), row("article"), row(dtype="int64", cold=True), row(dtype="int64", path="split")])
        self.assertIn("| 64 | 8 of 256 | 128 | uniform, int64, cold | grid | 2.00 | 1.90 to 2.10 | 0.80 |", lines)
        self.assertIn("| 64 | 8 of 256 | 128 | uniform, int64 | split | 2.00 | 1.90 to 2.10 | 0.80 |", lines)
        self.assertEqual(sum(line.startswith("| 64") for line in lines), 3)

    def test_has_no_floor_on_a_cpu(self):
        lines = self.lines([row(floor_us=None, path="cpu")])
        self.assertEqual(lines[2], "| 64 | 8 of 256 | 128 | uniform | cpu | 2.00 | 1.90 to 2.10 |  |")

    def test_says_where_it_comes_from(self):
        self.assertEqual(
            self.lines([row()])[-1],
            "cuda: a card; events; 2026-01-02; commit abc; `tokenyard bench align --json 0.json`",
        )
        lines = list(table.tables({**CONTEXT, "command": ["a", "b"]}, [row()]))
        self.assertTrue(lines[-1].endswith("commit abc; 2 commands, recorded in the file"), lines[-1])


try:
    import plot
except ImportError:
    plot = None


@unittest.skipIf(plot is None, "no matplotlib")
class Plot(unittest.TestCase):
    def test_takes_from_later_files_what_the_first_lacks(self):
        first = [row(tokens=1), row(tokens=2), row("article", tokens=1), row(tokens=4, cold=True)]
        second = [row(tokens=1, us=9.0), row("torch_sort", tokens=1), row("torch_sort", tokens=2)]
        lines = plot.series([first, second], lambda one: not one["cold"])
        self.assertEqual(
            {name: list(points) for name, points in lines.items()},
            {"tokenyard": [1, 2], "article": [1], "torch_sort": [1, 2]},
        )
        self.assertEqual(lines["tokenyard"][1]["us_p50"], 2.0)

    def test_draws_a_line_for_each_and_the_floor(self):
        rows = [row(impl, tokens, us) for impl, us in (("tokenyard", 2.0), ("article", 5.0)) for tokens in (1, 64)]
        figure = plot.draw(plot.series([rows], lambda _: True), "title", "subtitle")
        axes = figure.axes[0]
        drawn = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}
        self.assertEqual(
            drawn,
            {
                "tokenyard": ([1, 64], [2.0, 2.0]),
                "article": ([1, 64], [5.0, 5.0]),
                "empty kernel (floor)": ([1, 64], [0.8, 0.8]),
            },
        )
        self.assertEqual((axes.get_xscale(), axes.get_yscale()), ("log", "log"))
        with tempfile.TemporaryDirectory() as folder:
            plot.save(figure, os.path.join(folder, "a"))
            xml.etree.ElementTree.parse(os.path.join(folder, "a.svg"))
            with open(os.path.join(folder, "a.png"), "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")


if __name__ == "__main__":
    unittest.main()
