"""Stands in for `inferscope record`: keeps to the protocol of files in the segments' folder and notes what it saw.
What it is to do wrong comes from FAKE_RECORDER."""

import json
import os
import sys
import time
from pathlib import Path


def main() -> int:
    behaviour = os.environ.get("FAKE_RECORDER", "")
    arguments = sys.argv[1:]
    options = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    segments, output, pid = Path(options["--segments"]), Path(options["--output"]), int(options["--pid"])
    output.mkdir(parents=True, exist_ok=True)
    seen = {"arguments": arguments, "segments": sorted(path.name for path in segments.glob("*.segment"))}
    seen["parent"] = os.getppid()
    seen["session"] = os.getsid(0) != os.getsid(pid)
    if behaviour != "never ready":
        (segments / "ready").touch()
    while not (segments / "stop").exists():
        if not Path(f"/proc/{pid}").exists() or not segments.exists():
            break
        time.sleep(0.005)
    if behaviour == "dies":
        return 1
    seen["stopped"] = (segments / "stop").exists()
    report = output / "report.md"
    report.write_text("the report")
    # Last, and whole at once: a test that finds it finds the rest.
    (output / "seen.new").write_text(json.dumps(seen))
    (output / "seen.new").rename(output / "seen.json")
    if segments.exists():
        # Whole at once: the package reads it as soon as it is there.
        (segments / "done.new").write_text(f"{report}\n")
        (segments / "done.new").rename(segments / "done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
