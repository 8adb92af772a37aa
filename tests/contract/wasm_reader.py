"""Reads what a relocatable WebAssembly object holds, as elf_reader.py does for ELF. Source: the
core specification's binary format, and "Linking" of WebAssembly/tool-conventions (version 2)."""

from elf_reader import Section, Symbol

CUSTOM, IMPORT, CODE, DATA = 0, 2, 10, 11
SEGMENT_INFO, SYMBOL_TABLE = 5, 8
FUNCTION_SYMBOL, DATA_SYMBOL, SECTION_SYMBOL = 0, 1, 3
LOCAL, UNDEFINED, EXPLICIT_NAME = 2, 0x10, 0x40


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def more(self):
        return self.at < len(self.data)

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        """An unsigned LEB128 integer."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def name(self):
        return self.take(self.number()).decode()

    def parts(self):
        """(kind, content) of each section or subsection from here on."""
        while self.more():
            kind = self.byte()
            yield kind, Bytes(self.take(self.number()))


def imported_functions(section):
    """Names, by index. The other imports (memory, table, stack pointer) are passed over."""
    names = []
    for _ in range(section.number()):
        section.name()
        name, kind = section.name(), section.byte()
        if kind == 0:
            names.append(name)
            section.number()
        elif kind == 3:
            section.take(2)
        else:
            if kind == 1:
                section.byte()
            flags = section.number()
            for _ in range(1 + (flags & 1)):
                section.number()
    return names


def segment_sizes(section):
    """Of active segments in memory 0, whose address is a constant."""
    sizes = []
    for _ in range(section.number()):
        if section.number() != 0 or section.byte() != 0x41:
            raise ValueError("a data segment of a kind unknown here")
        while section.byte() & 128:  # the address, signed
            pass
        if section.byte() != 0x0B:
            raise ValueError("a segment's address is no constant")
        sizes.append(section.number())
        section.take(sizes[-1])
    return sizes


def read_symbols(table, functions):
    """Functions and data; the stack pointer and the table of functions are the engine's."""
    symbols = []
    for _ in range(table.number()):
        kind, flags = table.byte(), table.number()
        defined = not flags & UNDEFINED
        if kind == SECTION_SYMBOL:
            table.number()
            continue
        if kind == DATA_SYMBOL:
            name = table.name()
            if defined:
                table.number(), table.number(), table.number()
        else:
            index = table.number()
            if defined or flags & EXPLICIT_NAME:
                name = table.name()
            else:
                name = functions[index] if kind == FUNCTION_SYMBOL else ""
        if kind in (FUNCTION_SYMBOL, DATA_SYMBOL):
            symbols.append(Symbol(name, defined, flags & 3 != LOCAL))
    return symbols


def read_object(data):
    """(sections, symbols): every segment of data is a section, and so is the code."""
    if data[:8] != b"\0asm\1\0\0\0":
        raise ValueError("this is no WebAssembly of version 1")
    whole = Bytes(data)
    whole.take(8)
    functions, sizes, names, sections, symbols = [], [], [], [], []
    for kind, section in whole.parts():
        if kind == IMPORT:
            functions = imported_functions(section)
        elif kind == CODE:
            sections.append(Section("CODE", len(section.data), True, False, True))
        elif kind == DATA:
            sizes = segment_sizes(section)
        elif kind == CUSTOM and section.name() == "linking":
            if section.number() != 2:
                raise ValueError("linking data of another version")
            for part, content in section.parts():
                if part == SYMBOL_TABLE:
                    symbols = read_symbols(content, functions)
                elif part == SEGMENT_INFO:
                    for _ in range(content.number()):
                        names.append(content.name())
                        content.number(), content.number()
    sections += [Section(name, size, True, not name.startswith(".rodata"), False)
                 for name, size in zip(names, sizes, strict=True)]
    return sections, symbols
