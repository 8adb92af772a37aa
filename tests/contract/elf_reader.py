"""Reads what an archive of ELF objects holds. Written apart from the compiler's own reader, so that
a mistake there cannot hide one here."""

import collections
import struct

Section = collections.namedtuple("Section", "name bytes allocated writable executable")
Symbol = collections.namedtuple("Symbol", "name defined is_global")


def members(data):
    """(name, bytes) of each object in an `ar` archive; symbol tables are left out."""
    if data[:8] != b"!<arch>\n":
        raise ValueError("this is no archive")
    found, long_names, at = [], b"", 8
    while at < len(data):
        header = data[at:at + 60]
        if header[58:60] != b"`\n":
            raise ValueError(f"damaged member header at byte {at}")
        name, size = header[:16].rstrip().decode(), int(header[48:58])
        body = data[at + 60:at + 60 + size]
        if name == "//":
            long_names = body
        elif name not in ("/", "/SYM64/"):
            if name[0] == "/":
                start = int(name[1:])
                name = long_names[start:long_names.index(b"\n", start)].decode()
            found.append((name.rstrip("/"), body, header))
        at += 60 + size + size % 2
    return found


def text_at(table, offset):
    return table[offset:table.index(b"\0", offset)].decode()


def read_object(data):
    """(sections, symbols) of a little-endian ELF object of 32 or 64 bits."""
    if data[:4] != b"\x7fELF" or data[5] != 1:
        raise ValueError("this is no little-endian ELF object")
    wide = data[4] == 2
    header = struct.unpack_from("<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH", data, 16)
    start, entry, count, names = header[5], header[10], header[11], header[12]
    rows = [struct.unpack_from("<IIQQQQIIQQ" if wide else "<IIIIIIIIII", data, start + i * entry)
            for i in range(count)]
    contents = [data[row[4]:row[4] + row[5]] if row[1] != 8 else b"" for row in rows]
    sections = [Section(text_at(contents[names], row[0]), row[5], bool(row[2] & 2),
                        bool(row[2] & 1), bool(row[2] & 4)) for row in rows]
    symbols = []
    for index, row in enumerate(rows):
        if row[1] != 2:  # SHT_SYMTAB
            continue
        strings, table = contents[row[6]], contents[index]
        for at in range(row[9], len(table), row[9]):
            if wide:
                name, info, _, section, _, _ = struct.unpack_from("<IBBHQQ", table, at)
            else:
                name, _, _, info, _, section = struct.unpack_from("<IIIBBH", table, at)
            if info & 15 not in (3, 4):  # section and file symbols
                symbols.append(Symbol(text_at(strings, name), section != 0, info >> 4 != 0))
    return sections, symbols
