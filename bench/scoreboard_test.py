"""Tests of the scoreboard's own machinery; nothing here measures anything.

    python3 bench/scoreboard_test.py
"""

import ast
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "host")]
import common  # noqa: E402
import environments  # noqa: E402
import goals  # noqa: E402
import networks  # noqa: E402
import publish  # noqa: E402
import rounds  # noqa: E402
import store  # noqa: E402
import tables  # noqa: E402
import workers  # noqa: E402
from areas import generators, survey, training  # noqa: E402

ANSWERING = ("import sys\nprint('hello')\nprint('ready {\"version\": \"1\"}', flush=True)\n"
             "for line in sys.stdin: print(int(line.split()[1]) * 1000, "
             "int(line.split()[1]) * 1000, flush=True)")


def command(program):
    return [sys.executable, "-c", program]


def core():
    return max(os.sched_getaffinity(0))


class Rounds(unittest.TestCase):
    def test_quantiles_interpolate(self):
        self.assertEqual(rounds.quantiles([3, 1, 2])["median"], 2)
        self.assertAlmostEqual(rounds.quantiles([0, 10])["p10"], 1)
        self.assertEqual(rounds.quantiles([7]), {"p10": 7, "median": 7, "p90": 7})

    def test_ratios_take_common_rounds_only(self):
        self.assertEqual(rounds.ratios([2, None, 6], [1, 5, 2])["median"], 2.5)
        self.assertIsNone(rounds.ratios([None, 1], [1, None]))

    def test_slow_sides_take_part_in_few_rounds(self):
        plan = rounds.Plan(core(), 30, 0.05, 10.0, 5)
        slow = types.SimpleNamespace(batch=1, seconds_per_turn=2.0)
        self.assertEqual(rounds.every_nth(slow, plan), 6)
        slow.seconds_per_turn = 1000.0
        self.assertEqual(rounds.every_nth(slow, plan), 10)
        slow.batch = 2
        self.assertEqual(rounds.every_nth(slow, plan), 1)

    def test_a_failing_side_does_not_end_the_run(self):
        sides = [rounds.Side("good", command(ANSWERING)),
                 rounds.Side("bad", command("raise ValueError('no such model')")),
                 rounds.Side("mute", command(ANSWERING.replace("for line", "exit()\nfor line"))),
                 rounds.Side("none", absent="not installed")]
        with tempfile.TemporaryDirectory() as folder:
            plan = rounds.Plan(core(), 3, 1e-5, 1.0, 60)
            done = rounds.run(sides, plan, pathlib.Path(folder))
        self.assertEqual(list(done["times"]), ["good"])
        self.assertEqual(done["times"]["good"], [1e-6] * 3)
        self.assertEqual(done["facts"]["good"], {"version": "1"})
        self.assertIn("ValueError: no such model", sides[1].absent)
        self.assertEqual(sorted(note.split(":")[0] for note in done["notes"]), ["bad", "mute"])

    def test_a_worker_that_says_nothing_is_ended(self):
        with self.assertRaisesRegex(RuntimeError, "no answer within"):
            workers.Worker(command("import time; time.sleep(600)"), core(), start_limit=0.5)


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("OUT", "BENCH"):
            patch = mock.patch.object(common, name, self.folder)
            patch.start()
            self.addCleanup(patch.stop)
        self.program = self.folder / "program"
        self.program.write_bytes(b"one")

    def test_rows_are_kept_for_the_same_program_only(self):
        first = store.Store("area", self.program, False)
        first.attempt("a", lambda: {"value": 1})

        def fail():
            raise RuntimeError("broken")
        first.attempt("b", fail)
        again = store.Store("area", self.program, True)
        again.attempt("a", fail)
        again.attempt("b", lambda: {"value": 2})
        self.assertEqual(again.content["rows"], {"a": {"value": 1}, "b": {"value": 2}})
        self.assertEqual(again.content["notes"], {})
        self.program.write_bytes(b"two")
        self.assertEqual(store.Store("area", self.program, True).content["rows"], {})

    def test_publishing_replaces_the_sections_of_what_was_measured(self):
        def area(name):
            stored = f"{name}-score"  # an area's file may have a name of its own
            store.Store(stored, self.program, False).save()
            return types.SimpleNamespace(
                NAME=stored, TITLE=f"of {name}",
                tables=lambda content: [tables.Table("T", ["a", "b"], [["1", "2"]])])
        areas = {name: area(name) for name in ("first", "second", "third")}
        page = self.folder / "results.md"
        page.write_text(f"head\n{publish.BEGIN}\n\n## Results: of first\n\nkept\n\n"
                        f"## Results: of second\n\nold\n\n{publish.END}\ntail\n")
        publish.write_results(areas, ["second"])
        text = page.read_text()
        self.assertTrue(text.startswith("head\n") and text.endswith(f"\n{publish.END}\ntail\n"))
        self.assertIn("## Results: of first\n\nkept\n\n## Results: of second\n", text)
        self.assertNotIn("old", text)
        self.assertNotIn("of third", text)
        self.assertIn("| a | b |\n|---|---|\n| 1 | 2 |", text)
        publish.write_results(areas, ["second"])
        self.assertEqual(page.read_text(), text)

    def test_a_verdict_is_about_the_number_that_is_shown(self):
        (self.folder / "goals.csv").write_text(
            "area,row,measure,relation,goal\nx,*,speed,>=,1.5\nx,r,speed,>=,2\nx,*,bytes,<=,10\n")
        goals.all_goals.cache_clear()
        self.addCleanup(goals.all_goals.cache_clear)
        self.assertEqual(goals.verdict("x", "r", "speed", 1.99), ["≥ 2", "missed"])
        self.assertEqual(goals.verdict("x", "r", "speed", 1.996), ["≥ 2", "met"])
        self.assertEqual(goals.verdict("x", "s", "speed", 1.6), ["≥ 1.5", "met"])
        self.assertEqual(goals.verdict("x", "s", "bytes", 11), ["≤ 10", "missed"])
        self.assertEqual(goals.verdict("x", "s", "bytes", None), ["≤ 10", "not measured"])
        self.assertEqual(goals.verdict("y", "s", "bytes", 1), ["–", ""])


class Cells(unittest.TestCase):
    def test_three_digits(self):
        self.assertEqual([tables.number(v) for v in (0.5, 2.944, 15.91, 173.5, 12345.6, None)],
                         ["0.50", "2.94", "15.9", "174", "12,346", "–"])

    def test_absences_are_grouped(self):
        self.assertEqual(tables.explain([("a", "TVM", "no"), ("b", "TVM", "no"), ("a", "x", "?")]),
                         ["- TVM: no (a, b)", "- x: ? (a)"])


class Goals(unittest.TestCase):
    def test_the_file_is_well_formed(self):
        for (area, row, measure), (relation, goal) in goals.all_goals().items():
            self.assertIn(relation, (">=", "<="), (area, row, measure))
            self.assertGreater(goal, 0)


class TrainingCases(unittest.TestCase):
    def test_a_case_is_a_network_a_batch_and_perhaps_a_variant(self):
        cases = training.all_cases()
        self.assertEqual(cases.index("ic:8:winograd"), cases.index("ic:8") + 1)
        self.assertEqual(training.parts_of("ic:8"), ("ic", 8, []))
        self.assertEqual(training.parts_of("ic:1:winograd"), ("ic", 1, ["--winograd", "auto"]))


class SurveyNetworks(unittest.TestCase):
    def test_the_rows_are_those_that_pytorch_defines(self):
        tree = ast.parse((HERE / "models/survey_networks.py").read_text())
        table = next(node.value for node in tree.body if isinstance(node, ast.Assign)
                     and node.targets[0].id == "NETWORKS")
        self.assertEqual(sorted(key.value for key in table.keys), sorted(survey.ROWS))

    def test_a_peer_that_was_not_measured_is_a_dash(self):
        times = {"median": 2.0, "p10": 1.0, "p90": 3.0}
        row = {"us": {"train_step": times, "PyTorch eager": times},
               "over_step": {"PyTorch eager": times}, "absent": {}, "state_bytes": 1000,
               "arena_bytes": 24, "optimizer": "sgd"}
        text = survey.tables({"rows": {"lenet:8": row}})[0].markdown()
        self.assertIn("(2.00) | – | 1,024", text)
        self.assertIn("was not measured", text)


class Networks(unittest.TestCase):
    def test_a_variant_is_its_network_with_options(self):
        rows = networks.rows_with_variants()
        self.assertEqual(rows.index("vww:range"), rows.index("vww") + 1)
        self.assertEqual(networks.options_of("vww"), [])
        self.assertEqual(networks.options_of("vww:range")[0], "--input-range")
        self.assertTrue(set(networks.VARIANTS) < set(rows))
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "vww_fp32" / "model.onnx"
            model.parent.mkdir()
            model.touch()
            with mock.patch.dict(os.environ, {"BACKCAST_MODELS": folder}):
                self.assertEqual(networks.path_of("vww:range"), model)


class Generators(unittest.TestCase):
    def test_the_worker_calls_a_generated_function(self):
        one = types.SimpleNamespace(bytes=8)
        library = types.SimpleNamespace(inputs=[one], outputs=[one])
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            source = folder / "model.c"
            source.write_text("void model(const float x[2], float y[2]) {\n"
                              "  y[0] = x[1];\n  y[1] = x[0];\n}\n")
            generators.write_glue(folder, library, source)
            common.run_tool(["cc", "-std=gnu11", "-I", folder, workers.HOST / "worker.c", source,
                             "-o", folder / "worker"])


class Environments(unittest.TestCase):
    def test_a_variable_names_an_interpreter(self):
        with mock.patch.dict(os.environ, {"BACKCAST_ORT_TRAINING_PYTHON": "/x/python"}):
            self.assertEqual(environments.python_of("ort-training"), "/x/python")


if __name__ == "__main__":
    unittest.main()
