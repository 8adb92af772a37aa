"""Programs that tests run."""

import shutil
import subprocess
import sys

SKIPPED = 77  # exit status


def run(*command, folder, **options):
    """What the command printed; a failure shows it and ends the test."""
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True,
                          text=True, timeout=300, **options)
    if done.returncode != 0:
        sys.exit(f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def skip_without(tools):
    """Ends the test where one of them is not installed."""
    for tool in tools:
        if not shutil.which(tool):
            print(f"{tool} is not installed: skipped")
            sys.exit(SKIPPED)
