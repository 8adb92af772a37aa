"""What bench/run is told: areas, rows, sides, and how long everything may take."""

import argparse
import os
import pathlib
import re

import common
import rounds

# rounds, seconds of a batch, seconds of a slow side
PLANS = {"host": {True: (15, 0.002, 2.0), False: (100, 0.005, 20.0)},
         "training": {True: (7, 0.02, 2.0), False: (30, 0.05, 15.0)}}


class Options:
    """The parsed command line."""

    def __init__(self, arguments, areas):
        parser = argparse.ArgumentParser(prog="bench/run", description="Backcast beside its peers.")
        parser.add_argument("words", nargs="*", metavar="AREA | ROW | MODEL.onnx",
                            help=f"areas: {', '.join(areas)}, all (default: host); rows: names of "
                            "table rows, all by default")
        parser.add_argument("--quick", action="store_true", help="few rounds of short batches")
        parser.add_argument("--rounds", type=common.positive, help="instead of the area's number")
        parser.add_argument("--side", action="append", metavar="NAME",
                            help="only sides whose name contains this, ONNX Runtime always")
        parser.add_argument("--no-peers", action="store_true", help="only ONNX Runtime and ours")
        parser.add_argument("--resume", action="store_true",
                            help="keep the rows that this program has measured before")
        parser.add_argument("--markdown", action="store_true",
                            help="measure nothing: print the tables of the last results")
        parser.add_argument("--publish", action="store_true",
                            help="write the tables into bench/results.md, too")
        parser.add_argument("--optimizer", choices=("sgd", "momentum", "adam"),
                            default="sgd")
        parser.add_argument("--compile-limit", type=common.positive, default=600,
                            metavar="SECONDS", help="for a C compiler on one file; default 600")
        parser.add_argument("--start-limit", type=common.positive, default=900, metavar="SECONDS",
                            help="for a peer to compile a model; default 900")
        parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
        common.add_program_option(parser)
        given = parser.parse_intermixed_args(arguments)
        for key in ("quick", "resume", "markdown", "publish", "optimizer", "compile_limit",
                    "backcast"):
            setattr(self, key, getattr(given, key))
        self.given = given
        self.files = [pathlib.Path(word) for word in given.words if word.endswith(".onnx")]
        self.areas = [word for word in given.words if word in areas]
        if "all" in given.words:
            self.areas = list(areas)
        self.rows = [word for word in given.words
                     if word not in areas and word != "all" and not word.endswith(".onnx")]
        self.areas = self.areas or ["host"]
        self.unknown = set(self.rows)  # until an area has them

    def wants(self, side):
        """Whether this side takes part."""
        if self.given.side:
            return any(word.lower() in side.lower() for word in self.given.side)
        return not self.given.no_peers or side in ("lib", "C, gcc", "C, clang", "ORT")

    def chosen(self, rows):
        """Those of an area's rows that were named; all when nothing was."""
        if not self.rows and not self.files:
            return rows
        network = {row: re.split("[:,]", row)[0] for row in rows}
        found = [row for row in rows if row in self.rows or network[row] in self.rows]
        self.unknown -= {*found, *(network[row] for row in found)}
        return found

    def plan(self, area):
        number, batch, slow_side = PLANS[area][self.quick]
        return rounds.Plan(self.given.core, self.given.rounds or number, batch, slow_side,
                           self.given.start_limit)
