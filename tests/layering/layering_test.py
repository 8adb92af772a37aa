#!/usr/bin/env python3
"""Holds the tree to its own rules: which folder may include which, where protobuf, LLVM and other
libraries may be seen, how long a file may be, and which words promise instead of doing.

layering_test.py [ROOT]: checks every file below ROOT (the repository), and first that each rule
notices an offence.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAX_LINES = 500

# Folder → what its files may include from the repository, besides the folder itself.
# The deepest folder that matches counts.
MAY_INCLUDE = {
    "ir/graph": [],
    "ir/target": ["ir/graph"],
    "ir/ops": ["ir/graph"],
    "ir/loop": ["ir/graph"],
    "frontend": ["ir"],
    "passes": ["ir"],
    "backend/library": ["ir"],
    "backend/c": ["ir", "backend/library"],
    "backend/llvm": ["ir", "backend/library"],
    "runtime-c": [],
    "driver/harness": [],
    "driver": ["ir", "frontend", "passes", "backend", "driver"],
}

# Library header → where it may be included.
LIBRARIES = {
    r"google/protobuf/|onnx/onnx": ["frontend/onnx_proto"],
    r"llvm(-c)?/|lld/|clang": ["backend/llvm/"],
    r"CLI/": ["driver/"],
    r"nlohmann/": ["driver/", "backend/library/", "tests/"],
    r"gtest/|gmock/": ["tests/"],
    r"benchmark/": ["bench/"],
}

# Put together here so that this file does not offend itself.
PROMISES = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")

CODE = {".h", ".cpp", ".c"}
COUNTED = CODE | {".py", ".sh", ".cmake"}
TEXT = COUNTED | {".md", ".txt", ".ir", ".ld", ".json", ".in", ".def", ""}
SKIPPED_FOLDERS = {"build", ".git", "__pycache__", ".cache"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
LINKED = ("ir", "frontend", "passes", "backend", "driver")  # into one program


def layer_of(path):
    """The rule's folder that holds this path, or None."""
    best = None
    for folder in MAY_INCLUDE:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def wrong_include(path, quote, header, exists):
    """Why this include is against the rules, or None."""
    for pattern, places in LIBRARIES.items():
        if re.match(pattern, header) and not any(path.startswith(place) for place in places):
            return f"only {' and '.join(places)} may include <{header}>"
    layer = layer_of(path)
    if layer is None or quote != '"':
        return None
    beside = str(pathlib.PurePosixPath(path).parent / header)
    # What devices compile stands alone.
    alone = layer in ("driver/harness", "runtime-c")
    if not alone and "/" not in header and exists(beside):
        return f'write "{beside}": includes start at the repository\'s root'
    if not exists(header):
        return None  # generated, or a library's
    if not any(header.startswith(folder + "/") for folder in [layer, *MAY_INCLUDE[layer]]):
        return f'{layer} may not include "{header}"'
    return None


def offences(path, text, exists):
    """Lines that describe what is wrong with one file."""
    suffix = pathlib.PurePosixPath(path).suffix
    found = []
    if suffix in CODE:
        for match in INCLUDE.finditer(text):
            why = wrong_include(path, match[1], match[2], exists)
            if why:
                found.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {why}")
    lines = text.count("\n")
    if suffix in COUNTED and lines > MAX_LINES:
        found.append(f"{path}: {lines} lines, {MAX_LINES} at most")
    for number, line in enumerate(text.splitlines(), 1):
        if PROMISES.search(line):
            found.append(f"{path}:{number}: a promise instead of code: {line.strip()}")
    return found


def types_of(text):
    """Qualified names of the types that a header defines outside of other types."""
    spaces, found = [], []
    for line in text.splitlines():
        if opened := re.match(r"namespace ([\w:]+) \{", line):
            spaces.append(opened[1])
        elif re.match(r"\}  // namespace", line) and spaces:
            spaces.pop()
        elif defined := re.match(r"(?:struct|class|enum class) (\w+)[^;]*\{", line):
            found.append("::".join([*spaces, defined[1]]))
    return found


def twice_defined(headers):
    """Two types of one name in two headers are undefined behaviour that no compiler sees: programs
    get the members of one and the destructor of the other."""
    places = {}
    for path, text in headers.items():
        for name in types_of(text):
            places.setdefault(name, set()).add(path)
    return [f"{name} is defined in {' and in '.join(sorted(paths))}"
            for name, paths in places.items() if len(paths) > 1]


def check_the_rules():
    """Each rule must notice what it is there for, and nothing else."""
    bad = {
        "ir/graph/a.cpp": '#include "passes/pipeline.h"',
        "ir/loop/a.cpp": '#include "ir/ops/ops.h"',
        "ir/ops/a.h": '#include <google/protobuf/message.h>',
        "passes/graph/a.cpp": '#include "frontend/import.h"',
        "frontend/rules/a.cpp": '#include "onnx/onnx.pb.h"',
        "backend/c/a.cpp": '#include "backend/llvm/emit.h"',
        "passes/lower/a.cpp": '#include "llvm/IR/Module.h"',
        "backend/llvm/a.cpp": '#include "driver/compiler.h"',
        "runtime-c/a.c": '#include "ir/graph/type.h"',
        "ir/graph/b.cpp": '#include "type.h"',
        "driver/long.py": "\n" * (MAX_LINES + 1),
        "README.md": "TO" + "DO: write this",
    }
    good = {
        "ir/graph/a.cpp": '#include "ir/graph/type.h"\n#include <fmt/format.h>',
        "frontend/onnx_proto.cpp": '#include "onnx/onnx.pb.h"\n#include "ir/graph/type.h"',
        "backend/llvm/a.cpp": '#include "llvm/IR/Module.h"\n#include "backend/library/abi.h"',
        "driver/a.cpp": '#include "backend/llvm/emit.h"\n#include <CLI/CLI.hpp>',
        "driver/harness/a.c": '#include "harness.h"',
        "tests/a.cpp": '#include <gtest/gtest.h>\n#include "driver/compiler.h"',
    }
    ours = {folder.split("/")[0] for folder in MAY_INCLUDE}

    def exists(path):
        return path.split("/")[0] in ours

    wrong = [f"rule fails to notice: {path}: {text.strip()}" for path, text in bad.items()
             if not offences(path, text, exists)]
    for path, text in good.items():
        wrong += [f"rule is too strict: {line}" for line in offences(path, text, exists)]
    header = "namespace a {\nstruct T {\n};\n}  // namespace a\n"
    other = header.replace("namespace a", "namespace b")
    if not twice_defined({"x.h": header, "y.h": header}):
        wrong.append("rule fails to notice: a type in two headers")
    wrong += twice_defined({"x.h": header, "y.h": other})
    return wrong


def files(root):
    folders = [root]
    while folders:
        for entry in sorted(folders.pop().iterdir()):
            if entry.is_symlink():
                continue
            if entry.is_dir():
                if entry.name not in SKIPPED_FOLDERS:
                    folders.append(entry)
            elif entry.suffix in TEXT:
                yield entry


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    found, count, headers = check_the_rules(), 0, {}
    for file in files(root):
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        count += 1
        path = file.relative_to(root).as_posix()
        found += offences(path, text, lambda p: (root / p).exists())
        if path.split("/")[0] in LINKED and file.suffix == ".h":
            headers[path] = text
    found += twice_defined(headers)
    for line in found:
        print(line)
    print(f"{count} files, {len(found)} offences")
    return 1 if found or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
