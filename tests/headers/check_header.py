#!/usr/bin/env python3
"""Judges headers of compiled models: does each keep the contract every caller relies on?

    check_header.py [--types runtime-c/include/bc_types.h] HEADER...

Checked per header: compiles alone and twice included as C99, C11, C17, C++17 and C++20 without a
warning from any compiler found; sizes usable in #if; the shared types verbatim; no name outside the
model's prefix and bc_; nothing but <stddef.h> and <stdint.h> included; members of the input and
output structs typed, commented and sized as the contract says. All headers of one call must also
compile together. Exit status 1 if one is at fault, 2 if there is no compiler.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ("-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef"
            " -Werror").split()
C_WARNINGS = ["-Wstrict-prototypes", "-Wc++-compat"]
CXX_WARNINGS = ["-Wold-style-cast", "-Wnon-virtual-dtor"]
C_STANDARDS = ("c99", "c11", "c17")
CXX_STANDARDS = ("c++17", "c++20")
REQUIRED = ("ARENA_BYTES", "ARENA_ALIGN", "STACK_BYTES", "MODEL_HASH", "WEIGHT_BYTES")
# C type of each element type a member's comment may name; strings and packed types have no entry.
ELEMENTS = {"bool": "uint8_t", "f16": "uint16_t", "bf16": "uint16_t", "f32": "float",
            "f64": "double",
            **{f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t"
               for sign in "iu" for bits in (8, 16, 32, 64)}}
TRAINING = ("STATE_BYTES", "STATE_ALIGN", "PARAMETER_COUNT", "BATCH")


def find_compilers():
    """(command, language, standards) of every compiler on this machine."""
    found = []
    for names, language, standards in (
        (("gcc",), "c", C_STANDARDS),
        (("clang-19", "clang"), "c", C_STANDARDS),
        (("arm-none-eabi-gcc",), "c", ("c99", "c11")),
        (("g++",), "c++", CXX_STANDARDS),
        (("clang++-19", "clang++"), "c++", CXX_STANDARDS),
    ):
        command = next((shutil.which(name) for name in names if shutil.which(name)), None)
        if command:
            found.append((command, language, standards))
    return found


def strip_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


class Judge:
    def __init__(self, types_path, folder):
        text = types_path.read_text()
        self.types = text[text.index("#ifndef BC_TYPES_H"):]
        self.folder = folder
        self.compilers = find_compilers()
        self.faults = []

    def fault(self, where, what):
        self.faults.append(f"{where}: {what}")

    def compile(self, where, source, headers):
        """Compiles `source` with every compiler and standard; includes go by absolute path."""
        includes = "".join(f'#include "{header.resolve()}"\n' for header in headers)
        for command, language, standards in self.compilers:
            path = self.folder / ("unit.c" if language == "c" else "unit.cpp")
            path.write_text(includes + source)
            extra = C_WARNINGS if language == "c" else CXX_WARNINGS
            if "arm-none-eabi" in command:
                extra = extra + ["-ffreestanding", "-mcpu=cortex-m4", "-mthumb", "-fshort-enums"]
            for standard in standards:
                run = subprocess.run(
                    [command, f"-std={standard}", *WARNINGS, *extra, "-fsyntax-only", str(path)],
                    capture_output=True, text=True, timeout=120)
                if run.returncode != 0:
                    name = pathlib.Path(command).name
                    self.fault(where, f"{name} -std={standard}:\n{run.stderr.strip()}")

    def check_text(self, header, text):
        if not text.startswith("/* SPDX-License-Identifier: 0BSD */\n"):
            self.fault(header, "does not begin with the 0BSD licence line")
        if self.types not in text:
            self.fault(header, "does not hold the shared types verbatim")
        for name in re.findall(r"#\s*include\s+(\S+)", strip_comments(text)):
            if name not in ("<stddef.h>", "<stdint.h>"):
                self.fault(header, f"includes {name}")
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > 100 or line != line.rstrip() or "\t" in line:
                self.fault(header, f"line {number}: over 100 columns, tab or trailing space")

    def check_names(self, header, text, prefix):
        """Macros, types and functions outside the shared part carry the model's name."""
        own = strip_comments(text.replace(self.types, ""))
        lower = prefix.lower()
        for name in re.findall(r"#\s*define\s+(\w+)", own):
            if not name.startswith(prefix):
                self.fault(header, f"macro {name} lacks the prefix {prefix}")
        functions = re.findall(r"\b(\w+)\s*\([^;{}]*\)\s*;", own)
        types = re.findall(r"\}\s*(\w+)\s*;", own) + re.findall(r"struct\s+(\w+)", own)
        for name in functions + types:
            if not name.lower().startswith(lower):
                self.fault(header, f"{name} lacks the prefix {lower}")
        return functions

    def check_macros(self, header, text, prefix, functions):
        names = list(REQUIRED)
        if any(name.lower() == f"{prefix}init".lower() for name in functions):
            names += TRAINING
        lines = []
        for name in names:
            if not re.search(rf"#define {prefix}{name}\b", text):
                self.fault(header, f"{prefix}{name} is not defined")
                return
            lines += [f"#if {prefix}{name} + 0 < 0", "#error negative", "#endif"]
        for name in (n for n in names if n.endswith("_ALIGN")):
            value = f"{prefix}{name}"
            lines += [f"#if {value} < 1 || ({value} & ({value} - 1)) != 0",
                      "#error not a power of two", "#endif"]
        # Every sized macro also serves as an array bound; a null arena stays possible at zero.
        lines += [f"extern unsigned char check_arena[{prefix}ARENA_BYTES + 1];"]
        for name in re.findall(rf"#define ({prefix}\w+_ELEMENTS)\b", text):
            lines += [f"#if {name} < 0", "#error negative", "#endif"]
        # Each function's address is taken, so a declaration that only looks like one is found out.
        lines += ["extern void (*check_functions[])(void);"]
        lines += [f"void check_{i}(void);\nvoid check_{i}(void) {{ (void)&{name}; }}"
                  for i, name in enumerate(functions)]
        self.compile(header, "\n".join(lines) + "\n", [header, header])

    def check_members(self, header, text, prefix, functions):
        """Members of the structs of inputs and outputs: type against comment, and their macros."""
        pattern = r"typedef struct (\w+)_(inputs|outputs) \{\n(.*?)\} \1_\2;"
        structs = re.findall(pattern, text, flags=re.S)
        for name in (n for n in functions if n.endswith("_run")):
            for side in ("inputs", "outputs"):
                if (name, side) not in [(base, kind) for base, kind, _ in structs]:
                    self.fault(header, f"struct {name}_{side} is missing or laid out otherwise")
        for base, side, members in structs:
            entry = base[len(prefix):].upper()
            for line in members.splitlines():
                self.check_member(header, text, prefix, entry, side, line)
        sizes = re.findall(rf"#define {prefix}(\w+)_MIN\b", text)
        if sizes and f"{prefix}run_arena_bytes".lower() not in map(str.lower, functions):
            self.fault(header, "has symbolic dimensions, but no …_run_arena_bytes")

    def check_member(self, header, text, prefix, entry, side, line):
        def defined(name):
            return re.search(rf"#define {prefix}{name} ", text)

        if re.fullmatch(r"  uint8_t reserved;.*", line):
            return
        size = re.fullmatch(r"  int64_t (\w+); +/\* (\d+)\.\.(\d+) \*/", line)
        if size and side == "inputs":
            low, high = f"{size[1].upper()}_MIN {size[2]}\n", f"{size[1].upper()}_MAX {size[3]}\n"
            if f"#define {prefix}{low}" not in text or f"#define {prefix}{high}" not in text:
                self.fault(header, f"{size[1]} lacks macros {low.strip()}, {high.strip()}")
            return
        const = "const " if side == "inputs" else ""
        member = re.fullmatch(rf"  {const}(\w+) \*(\w+); +/\* (\w+)\[[^\]]*\].*\*/", line)
        if not member or ELEMENTS.get(member[3]) != member[1]:
            self.fault(header, f"member {line.strip()!r}: form, type or comment")
        elif not defined(f"{entry}_{side[:-4].upper()}_{member[2].upper()}_ELEMENTS"):
            self.fault(header, f"{entry}'s {member[2]} has no …_ELEMENTS")

    def check(self, header):
        text = header.read_text()
        self.check_text(header, text)
        guess = re.search(r"#define (\w+_)ARENA_BYTES\b", text)
        if not guess:
            self.fault(header, "defines no …_ARENA_BYTES")
            return
        functions = self.check_names(header, text, guess.group(1))
        if not any(name.endswith("_run") for name in functions):
            self.fault(header, "declares no …_run")
        self.check_members(header, text, guess.group(1), functions)
        self.check_macros(header, text, guess.group(1), functions)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--types", type=pathlib.Path, default=root / "runtime-c/include/bc_types.h")
    parser.add_argument("headers", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(args.types, pathlib.Path(folder))
        if not judge.compilers:
            print("check_header: no C compiler found", file=sys.stderr)
            return 2
        judge.compile(args.types, "", [args.types, args.types])
        for header in args.headers:
            judge.check(header)
        judge.compile("together", "", args.headers)
        for fault in judge.faults:
            print(fault, file=sys.stderr)
        used = ", ".join(pathlib.Path(command).name for command, _, _ in judge.compilers)
        print(f"{len(args.headers)} headers, {len(judge.faults)} faults ({used})")
        return 1 if judge.faults else 0


if __name__ == "__main__":
    sys.exit(main())
