#!/usr/bin/env python3
"""Libraries for Windows, macOS and iOS: systems_test.py BACKCAST

Each is linked by that system's linker with nothing but the functions that a library may call, and
one for Windows learns the same bits as on this machine, under Wine. Exit 77 if a linker, MinGW's
compiler or Wine is not installed.
"""

import os
import pathlib
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "support"))
from commands import run, skip_without  # noqa: E402

# What the systems' own libraries have.
HELPERS = """
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t count) { (void)from; (void)count; return to; }
void *memmove(void *to, const void *from, size_t count) { (void)from; (void)count; return to; }
void *memset(void *to, int byte, size_t count) { (void)byte; (void)count; return to; }
#if defined(_WIN32)
int _fltused;
void __chkstk(void) {}
#else
void bzero(void *to, size_t count) { (void)to; (void)count; }
void __bzero(void *to, size_t count) { (void)to; (void)count; }
#endif
"""
WINDOWS = ["lld-link-19", "/dll", "/noentry", "/nodefaultlib", "/out:net.dll",
           "/wholearchive:net.lib", "helpers.o"]
APPLE = ["ld64.lld-19", "-dylib", "-o", "net.dylib", "-all_load", "libnet.a", "helpers.o"]
SYSTEMS = {  # target of ours: clang's, the linker
    "x86-64-v3-windows": ("x86_64-pc-windows-msvc", WINDOWS),
    "aarch64-windows": ("aarch64-pc-windows-msvc", WINDOWS),
    "x86-64-v3-macos": ("x86_64-apple-macosx11", [
        *APPLE, "-arch", "x86_64", "-platform_version", "macos", "11", "11"]),
    "aarch64-macos": ("arm64-apple-macosx11", [
        *APPLE, "-arch", "arm64", "-platform_version", "macos", "11", "11"]),
    "cortex-a76-ios": ("arm64-apple-ios13", [
        *APPLE, "-arch", "arm64", "-platform_version", "ios", "13", "13"]),
}


def compile_network(target, folder):
    run(sys.argv[1], "compile", TESTS / "training/models/digits_cnn.onnx", "--name", "net",
        "--train", "--optimizer", "adam", "--target", target, "-o", ".", folder=folder)


def link(target, folder):
    clang, linker = SYSTEMS[target]
    (folder / "helpers.c").write_text(HELPERS)
    run("clang-19", f"--target={clang}", "-ffreestanding", "-fno-builtin", "-c", "helpers.c", "-o",
        "helpers.o", folder=folder)
    run(*linker, folder=folder)


def learned(target, compiler, library, runner, folder):
    compile_network(target, folder)
    run(compiler, "-O1", "-I.", TESTS / "support/learns.c", library, "-o", "learns.exe",
        folder=folder)
    environment = {**os.environ, "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all"}
    return run(*runner, "./learns.exe", folder=folder, env=environment).replace("\r", "")


def main():
    skip_without(["clang-19", "lld-link-19", "ld64.lld-19", "x86_64-w64-mingw32-gcc", "wine"])
    for target in SYSTEMS:
        with tempfile.TemporaryDirectory() as folder:
            compile_network(target, folder)
            link(target, pathlib.Path(folder))
    printed = []
    for system, compiler, library, runner in [
            ("", "gcc", "libnet.a", []),
            ("-windows", "x86_64-w64-mingw32-gcc", "net.lib", ["wine"])]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            printed.append(learned(f"x86-64{system}", compiler, library, runner,
                                   pathlib.Path(folder)))
    if not printed[0].endswith("status 0\n") or printed[0] != printed[1]:
        print("here:", printed[0], "on Windows:", printed[1], sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
