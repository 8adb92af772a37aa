#!/usr/bin/env python3
"""Writes the seeds of the fuzzers: seeds.py FOLDER makes FOLDER/{onnx,graph_text,loop_text} and a
dictionary FOLDER/<reader>.dict for each.

Seeds are what the tests hold already: models, and the inputs and outputs of the golden tests. The
dictionaries are the words in them.
"""

import hashlib
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
MOST_BYTES = 12_000  # of a seed: the fuzzers are fast on small ones


def texts():
    for path in sorted((TESTS / "golden").glob("*/*.ir")):
        for part in path.read_text().split("// ----\n"):
            yield "\n".join(line for line in part.splitlines() if not line.startswith("//"))


def models():
    for path in sorted(TESTS.glob("**/*.onnx")):
        yield path.read_bytes()


def main():
    folder = pathlib.Path(sys.argv[1])
    seeds = {"onnx": list(models()), "graph_text": [], "loop_text": []}
    for text in texts():
        seeds["graph_text" if "func @" in text else "loop_text"].append(text.encode())
    for reader, contents in seeds.items():
        (folder / reader).mkdir(parents=True, exist_ok=True)
        words = set()
        for content in contents:
            words.update(re.findall(rb"[A-Za-z_][\w.]{2,24}", content))
            if len(content) <= MOST_BYTES:
                name = hashlib.sha1(content).hexdigest()
                (folder / reader / name).write_bytes(content)
        lines = [f'"{word.decode()}"\n' for word in sorted(words)[:4000]]
        (folder / f"{reader}.dict").write_text("".join(lines))
        print(f"{reader}: {len(list((folder / reader).iterdir()))} seeds, {len(lines)} words")


if __name__ == "__main__":
    main()
