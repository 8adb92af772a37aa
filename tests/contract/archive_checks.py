"""What must hold of the files alone: symbols, sections, determinism."""

import re

import elf_reader
import wasm_reader

# The compiler's arithmetic helpers by their documented names (ARM's run-time ABI; libgcc's integer
# and soft-float routines). Nothing of libm is among them.
COPIES = {"memcpy", "memmove", "memset"}
ARM_COPIES = re.compile(r"__aeabi_mem(cpy|move|set|clr)[48]?")
ARM_HELPERS = re.compile(
    r"__aeabi_(u?idiv(mod)?|u?ldivmod|lmul|llsl|llsr|lasr|u?lcmp|[iu]div0|ldiv0"
    r"|[fd](add|sub|rsub|mul|div|neg|cmp(eq|lt|le|ge|gt|un)|2[ud]?[il]z|2iz|2uiz|2lz|2ulz)"
    r"|c[fd]r?cmp(eq|le)|f2d|d2f|f2h|d2h|h2f|u?[il]2[fd]|ui2[fd])")
GCC_HELPERS = re.compile(
    r"__((add|sub|mul|div|neg|eq|ne|lt|le|gt|ge|unord|cmp)[hsdt]f[23]?"
    r"|(u?div|u?mod|mul|u?divmod)[sdt]i[34]|(ashl|ashr|lshr)[sdt]i3"
    r"|(ctz|clz|popcount|ffs|parity|bswap)[sdt]i2"
    r"|(fix|fixuns)[hsdt]f[sdt]i|(float|floatun)[sdt]i[hsdt]f"
    r"|(extend|trunc)[hsdt]f[hsdt]f2)")


def read_object(body):
    return (wasm_reader if body[:4] == b"\0asm" else elf_reader).read_object(body)


def allowed_undefined(name, arm):
    if name in COPIES or GCC_HELPERS.fullmatch(name):
        return True
    return arm and bool(ARM_COPIES.fullmatch(name) or ARM_HELPERS.fullmatch(name))


def check_archive(data, prefix, arm, macros):
    """Faults of lib<prefix>.a, as sentences."""
    faults = []
    members = elf_reader.members(data)
    if not members:
        faults.append("the archive is empty")
    constants = 0
    for name, body, header in members:
        # Date, owner and group are constants, or two compilations would differ.
        if header[16:40].split() != [b"0", b"0", b"0"]:
            faults.append(f"{name}: date or owner in the archive")
        sections, symbols = read_object(body)
        for section in sections:
            if section.allocated and section.writable and section.bytes:
                faults.append(f"{name}: writable section {section.name}, {section.bytes} bytes")
            if section.name == f".rodata.{prefix}":
                constants += section.bytes
        defined = {s.name for s in symbols if s.defined and s.is_global}
        for symbol in sorted(defined):
            if not symbol.startswith(prefix + "_"):
                faults.append(f"{name}: global symbol {symbol} lacks the prefix {prefix}_")
        if f"{prefix}_run" not in defined:
            faults.append(f"{name}: {prefix}_run is not defined")
        for symbol in sorted({s.name for s in symbols if not s.defined and s.name}):
            if not allowed_undefined(symbol, arm):
                faults.append(f"{name}: needs {symbol}")
    if constants < macros["WEIGHT_BYTES"]:
        faults.append(f".rodata.{prefix} has {constants} bytes, the header promises "
                      f"{macros['WEIGHT_BYTES']} of weights there")
    return faults


def offered(data):
    """The global symbols that an archive defines."""
    found = set()
    for _, body, _ in elf_reader.members(data):
        _, symbols = read_object(body)
        found |= {symbol.name for symbol in symbols if symbol.defined and symbol.is_global}
    return found


def same_files(first, second):
    """Faults of two folders that should hold the same bytes."""
    names = sorted(path.name for path in first.iterdir())
    others = sorted(path.name for path in second.iterdir())
    if names != others:
        return [f"two compilations wrote different files: {names} and {others}"]
    return [f"two compilations differ in {name}" for name in names
            if (first / name).read_bytes() != (second / name).read_bytes()]
