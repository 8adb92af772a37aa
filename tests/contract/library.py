"""A compiled model as its header describes it, and the C that calls it in every allowed and
forbidden way."""

import re

SIZES = {"bool": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8,
         **{f"{sign}{bits}": bits // 8 for sign in "iu" for bits in (8, 16, 32, 64)}}
REFUSED = 1000  # what the thunk of refusals answers when every status was right


class Tensor:
    def __init__(self, field, element, shape, elements_macro):
        self.field, self.element, self.shape = field, element, shape
        self.elements_macro = elements_macro

    def count(self, sizes):
        total = 1
        for extent in filter(None, (part.strip() for part in self.shape.split(","))):
            total *= int(eval(extent.replace("/", "//"), {"__builtins__": {}}, dict(sizes)))
        return total

    def bytes(self, sizes):
        return self.count(sizes) * SIZES[self.element]


class Library:
    """`prefix`.h, read line by line."""

    def __init__(self, folder, prefix):
        self.folder, self.prefix = folder, prefix
        text = (folder / f"{prefix}.h").read_text()
        self.upper = prefix.upper()
        own = text[text.rindex("BC_TYPES_H */"):] if "BC_TYPES_H */" in text else text
        self.macros = {name: int(value) for name, value in
                       re.findall(rf"#define {self.upper}_(\w+) (\d+)\b", own)}
        self.sizes = {}  # field → (min, max)
        self.inputs = self.members(own, "inputs", "IN")
        self.outputs = self.members(own, "outputs", "OUT")

    def members(self, text, side, word):
        pattern = rf"typedef struct {self.prefix}_run_{side} \{{\n(.*?)\n\}}"
        body = re.search(pattern, text, flags=re.S).group(1)
        macros = re.findall(rf"#define ({self.upper}_RUN_{word}_\w+_ELEMENTS) ", text)
        tensors = []
        for line in body.splitlines():
            size = re.match(r"  int64_t (\w+); +/\* (\d+)\.\.(\d+) \*/", line)
            tensor = re.match(r"  (?:const )?\w+ \*(\w+); +/\* (\w+)\[([^\]]*)\]", line)
            if size:
                self.sizes[size[1]] = (int(size[2]), int(size[3]))
            elif tensor:
                tensors.append(Tensor(tensor[1], tensor[2], tensor[3], macros[len(tensors)]))
        if len(macros) != len(tensors):
            raise ValueError(f"{self.prefix}.h: {len(tensors)} {side}, {len(macros)} macros")
        return tensors

    def largest(self):
        return {name: bounds[1] for name, bounds in self.sizes.items()}

    # --- generated C --------------------------------------------------------------------------

    def fill(self):
        lines = [f"  {self.prefix}_run_inputs in;", f"  {self.prefix}_run_outputs out;",
                 "  (void)i; (void)o; (void)d; (void)bytes;"]
        lines += [f"  in.{name} = d[{k}];" for k, name in enumerate(self.sizes)]
        lines += [f"  in.{t.field} = i[{k}];" for k, t in enumerate(self.inputs)]
        lines += [f"  out.{t.field} = o[{k}];" for k, t in enumerate(self.outputs)]
        if not self.inputs and not self.sizes:
            lines.append("  in.reserved = 0;")
        if not self.outputs:
            lines.append("  out.reserved = 0;")
        return "\n".join(lines)

    def refusals(self):
        """Calls that must be answered with a status, each numbered; all else stays as it should."""
        run, lines, number = f"{self.prefix}_run", [], 100

        def expect(status, arguments, before="", after=""):
            nonlocal number
            number += 1
            lines.append(f"  {before}if ({run}({arguments}) != {status}) return {number};{after}")

        good = "&in, &out, arena, bytes, 0"
        expect("BC_ERROR_NULL", "0, &out, arena, bytes, 0")
        expect("BC_ERROR_NULL", "&in, 0, arena, bytes, 0")
        for side, pointers, tensors in (("in", "i", self.inputs), ("out", "o", self.outputs)):
            const = "const " if side == "in" else ""
            for k, tensor in enumerate(tensors):
                member, good_value = f"{side}.{tensor.field}", f"{pointers}[{k}]"
                restore = f" {member} = {good_value};"
                expect("BC_ERROR_NULL", good, f"{member} = 0; ", restore)
                if SIZES[tensor.element] > 1:
                    odd = f"({const}void *)(({const}char *){good_value} + 1)"
                    expect("BC_ERROR_ALIGNMENT", good, f"{member} = {odd}; ", restore)
        if self.macros["ARENA_BYTES"] > 0:
            need = "bytes"
            if self.sizes:
                need = f"{run}_arena_bytes({', '.join('in.' + name for name in self.sizes)})"
                lines.append(f"  if ({need} > bytes || {need} == 0) return 99;")
            expect("BC_ERROR_NULL", "&in, &out, 0, bytes, 0")
            expect("BC_ERROR_ARENA_SIZE", f"&in, &out, arena, {need} - 1, 0")
            expect("BC_ERROR_ARENA_SIZE", "&in, &out, arena, 0, 0")
            if self.macros["ARENA_ALIGN"] > 1:
                expect("BC_ERROR_ALIGNMENT", "&in, &out, (char *)arena + 1, bytes, 0")
                half = self.macros["ARENA_ALIGN"] // 2
                expect("BC_ERROR_ALIGNMENT", f"&in, &out, (char *)arena + {half}, bytes, 0")
        for k, (name, (low, high)) in enumerate(self.sizes.items()):
            for wrong in (f"{low} - 1", f"{high} + 1", "INT64_MIN", "INT64_MAX"):
                expect("BC_ERROR_DIMENSION", good, f"in.{name} = {wrong}; ", f" in.{name} = d[{k}];")
        return "\n".join(lines)

    def table(self):
        """(functions, rows) for the harness' table of cases: the run, then its refusals."""
        p, upper = self.prefix, self.upper
        signature = ("(const void *const *i, void *const *o, const int64_t *d, void *arena, "
                     "size_t bytes)")
        text = ""
        for word, side, tensors in (("in", "inputs", self.inputs),
                                    ("out", "outputs", self.outputs)):
            entries = [f"sizeof *(({p}_run_{side} *)0)->{t.field} * {t.elements_macro}"
                       for t in tensors]
            text += f"static const size_t {p}_{word}_bytes[] = {{{', '.join(entries + ['0'])}}};\n"
        text += (f"static int32_t {p}_good{signature} {{\n{self.fill()}\n  bc_status status;\n"
                 f"  CONTRACT_CALL(status, {p}_run(&in, &out, arena, bytes, 0));\n"
                 "  return status;\n}\n"
                 f"static int32_t {p}_refusals{signature} {{\n{self.fill()}\n"
                 f"{self.refusals()}\n  return {REFUSED};\n}}\n")
        row = (f"{upper}_ARENA_BYTES, {upper}_ARENA_ALIGN, 8, %s, {len(self.sizes)}, "
               f"{len(self.inputs)}, {p}_in_bytes, {len(self.outputs)}, {p}_out_bytes")
        return text, [f'{{"{p}", {p}_good, {row % (upper + "_STACK_BYTES")}}}',
                      f'{{"{p} refusals", {p}_refusals, {row % "0"}}}']


def table_source(libraries):
    """table.c: harness_cases holds two rows per library; dims_min and dims_max, its size ranges."""
    text = ('#include "harness.h"\n'
            "#ifdef CONTRACT_HOST\n#define CONTRACT_CALL(status, call) ((status) = (call))\n"
            "#else\n#define CONTRACT_CALL HARNESS_CALL\n#endif\n")
    text += "".join(f'#include "{library.prefix}.h"\n' for library in libraries)
    rows, ranges = [], []
    for library in libraries:
        functions, cases = library.table()
        text += functions
        rows += cases
        bounds = [f"{{{low}, {high}}}" for low, high in library.sizes.values()]
        ranges += [f"{{{', '.join(bounds + ['{0, 0}'])}}}"] * len(cases)
    return (text + f"const harness_case harness_cases[] = {{\n  " + ",\n  ".join(rows) + "};\n"
            f"const size_t harness_case_count = {len(rows)};\n"
            f"#ifdef CONTRACT_HOST\nextern const int64_t contract_ranges[{len(rows)}][8][2];\n"
            f"const int64_t contract_ranges[{len(rows)}][8][2] = {{\n  " + ",\n  ".join(ranges)
            + "};\n#endif\n")
