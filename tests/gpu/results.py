"""What the checks found: printed as they happen, with times, and kept as one JSON file."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Results:
    def __init__(self, name: str, machine: str, dry: bool = False) -> None:
        # A dry run shows that the scripts work, and nothing else: nothing passes in it.
        self._passed = "RAN " if dry else "PASS"
        self.folder = Path(os.environ.get("OUT") or "gpu-results")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = self.folder / f"{name}.json"
        self._log = (self.folder / f"{name}.txt").open("w", encoding="utf-8")
        self._began = time.monotonic()
        self.document: dict[str, Any] = {"name": name, "machine": machine, "checks": {}, "figures": {}}
        self.say(f"{name} on {machine}")

    def say(self, text: str) -> None:
        line = f"[{time.monotonic() - self._began:6.1f} s] {text}"
        print(line, flush=True)
        print(line, file=self._log, flush=True)

    def figure(self, name: str, value: Any, unit: str = "") -> None:
        self.document["figures"][name] = {"value": value, "unit": unit}
        self.say(f"     {name}: {value}{' ' + unit if unit else ''}")

    def check(self, name: str, work: Callable[[], None]) -> None:
        """Runs one check; what it asserts is kept, and the next one goes on."""
        began = time.monotonic()
        try:
            work()
            said = ""
        except AssertionError as error:
            said = str(error) or traceback.format_exc(limit=-1).strip().splitlines()[-2].strip()
        except Exception:
            said = traceback.format_exc(limit=-3).strip()
        took = round(time.monotonic() - began, 2)
        self.document["checks"][name] = {"passed": not said, "said": said, "seconds": took}
        self.say(f"{'FAIL' if said else self._passed} {name}{': ' + said if said else ''}")
        self.save()

    def save(self) -> None:
        self._file.write_text(json.dumps(self.document, indent=1), encoding="utf-8")

    def finish(self) -> int:
        self.save()
        checks = self.document["checks"].values()
        failed = [one for one in checks if not one["passed"]]
        word = "ran" if self._passed == "RAN " else "passed"
        self.say(f"{len(checks) - len(failed)} {word}, {len(failed)} failed; {self._file}")
        return 1 if failed else 0
