"""Results of an area in build/bench/AREA.json, written row by row so that a run can be resumed."""

import hashlib
import json
import sys
import time

import common


def path_of(area):
    return common.OUT / f"{area}.json"


def read(area):
    """What was measured last, or None."""
    path = path_of(area)
    return json.loads(path.read_text()) if path.exists() else None


class Store:
    """The rows of one area: {"machine", "date", "program", "rows", "notes", "seconds"}."""

    def __init__(self, area, program, resume):
        digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
        last = read(area) if resume else None
        if last is not None and last.get("program") != digest:
            print(f"{area}: the last results are another program's: measured anew", file=sys.stderr)
            last = None
        self.area = area
        self.content = last or {
            "machine": common.describe_machine(), "date": time.strftime("%Y-%m-%d"),
            "program": digest, "rows": {}, "notes": {}, "seconds": 0.0}

    def attempt(self, row, measure):
        """Adds what measure() returns, unless the row is there; a RuntimeError becomes a note."""
        rows, notes = self.content["rows"], self.content["notes"]
        if row in rows:
            print(f"{self.area} {row}: kept", file=sys.stderr)
            return
        started = time.monotonic()
        notes.pop(row, None)
        try:
            rows[row] = measure()
            said = "; ".join(rows[row].get("notes", []))
        except (RuntimeError, OSError) as error:
            notes[row] = said = str(error)
        spent = time.monotonic() - started
        self.content["seconds"] += spent
        print(f"{self.area} {row}: {spent:.0f} s{'; ' if said else ''}{said}", file=sys.stderr,
              flush=True)
        self.save()

    def save(self):
        common.OUT.mkdir(parents=True, exist_ok=True)
        path_of(self.area).write_text(json.dumps(self.content, indent=1))
