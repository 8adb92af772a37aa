#!/usr/bin/env python3
"""Uses Backcast as its users do: packaging_test.py BUILD_DIR.

Installs a finished build into a temporary folder, configures every example against it, builds and
runs them: on this machine, the firmware in QEMU, the web page's network under Node.js.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
TOOLCHAIN = EXAMPLES / "firmware/cortex-m4.cmake"


def run(*command):
    """What the command printed; a failure shows it and ends the test."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, timeout=500,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    if done.returncode != 0:
        sys.exit(f"$ {' '.join(map(str, command))}\n{done.stdout}exit status {done.returncode}")
    return done.stdout


class Examples:
    def __init__(self, prefix, scratch):
        self.prefix, self.scratch = prefix, scratch

    def copy_app(self, name):
        """The folder of a copy of the app, the networks beside it."""
        for example in ("app", "digits"):
            shutil.copytree(EXAMPLES / example, self.scratch / name / example)
        return self.scratch / name / "app"

    def build(self, name, *options, build="build"):
        folder = self.scratch / f"{name}-{build}"
        run("cmake", "-S", EXAMPLES / name, "-B", folder, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", *options)
        run("cmake", "--build", folder)
        return folder


def expect(what, pattern, text):
    if not re.search(pattern, text):
        sys.exit(f"{what}: no match for {pattern!r} in\n{text}")
    print(f"{what}: as expected")


def check_dependencies(examples, folder):
    """A changed model is compiled again; an unchanged one is not."""
    again = run("cmake", "--build", folder)
    expect("unchanged model", "no work to do", again)
    app = examples.copy_app("copy")
    digits = app.parent / "digits"
    build = examples.scratch / "copy-build"
    run("cmake", "-S", app, "-B", build, "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={examples.prefix}")
    run("cmake", "--build", build)
    shutil.copy(digits / "digits_mlp.onnx", digits / "digits_cnn.onnx")
    expect("changed model", "Compiling digits", run("cmake", "--build", build))
    expect("app with the other model", r"\n288 of 297 right",
           run(build / "app", EXAMPLES / "digits/digits_test.bin"))


def check_c(examples, how):
    """The model as C, by the project's compiler."""
    app = examples.copy_app(how)
    lists = app / "CMakeLists.txt"
    text = lists.read_text()
    lists.write_text(re.sub(r"(backcast_add_model\([^)]*)\)", rf"\1 {how})", text))
    build = app / "build"
    run("cmake", "-S", app, "-B", build, "-G", "Ninja", "-DCMAKE_C_FLAGS=-O2 -Werror",
        f"-DCMAKE_PREFIX_PATH={examples.prefix}")
    run("cmake", "--build", build)
    expect(f"app with {how}", r"\n293 of 297 right",
           run(build / "app", EXAMPLES / "digits/digits_test.bin"))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="backcast packaging ") as name:
        scratch = pathlib.Path(name)
        prefix = scratch / "installed here"
        run("cmake", "--install", build, "--prefix", prefix)
        examples = Examples(prefix, scratch)

        folder = examples.build("app")
        expect("app", r"\n293 of 297 right",
               run(folder / "app", EXAMPLES / "digits/digits_test.bin"))
        check_dependencies(examples, folder)
        check_c(examples, "EMIT c")
        check_c(examples, "TARGET c99")
        for example in ("digits", "finetune"):
            run("ctest", "--test-dir", examples.build(example), "--output-on-failure",
                "--no-tests=error")
            print(f"{example} on this machine: as expected")

        for example in ("custom_pass", "custom_kernel"):
            run("ctest", "--test-dir", examples.build(example, "-DCMAKE_BUILD_TYPE=Debug"),
                "--output-on-failure", "--no-tests=error")
            print(f"{example}: as expected")

        if all(map(shutil.which, ("clang-19", "wasm-ld-19", "node"))):
            run("ctest", "--test-dir", examples.build("web"), "--output-on-failure",
                "--no-tests=error")
            print("web: as expected")
        else:
            print("web: not run, clang-19, wasm-ld-19 or node is missing")

        if shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm"):
            toolchain = f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}"
            folder = examples.build("firmware", toolchain)
            expect("firmware", r"digit 3\n", run("cmake", "--build", folder, "--target", "run"))
            for example in ("digits", "finetune"):
                folder = examples.build(example, toolchain, build="cortex-m4")
                run("ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error")
                print(f"{example} on Cortex-M4: as expected")
        else:
            print("firmware: not run, arm-none-eabi-gcc or qemu-system-arm is missing")


if __name__ == "__main__":
    main()
