"""Stands in for `inferscope record`: keeps to the protocol of files and notes what it saw. It knows the environment and
no `.inferscope.yaml`. What it is to do wrong comes from FAKE_RECORDER."""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path


def has_own_session(pid: int) -> bool:
    try:
        return os.getsid(0) != os.getsid(pid)
    except ProcessLookupError:
        return True  # The program did not wait for us, and its session ended with it.


def main() -> int:
    behaviour = os.environ.get("FAKE_RECORDER", "")
    arguments = sys.argv[1:]
    options = dict(word.split("=", 1) for word in arguments if "=" in word)
    pid = int(options["--pid"])
    default = f"inferscope-traces/script-{os.getpid()}"
    output = Path(options.get("--output") or os.environ.get("INFERSCOPE_OUTPUT") or default).absolute()
    output.mkdir(parents=True, exist_ok=True)
    segments = Path(tempfile.mkdtemp(prefix=f"inferscope-{os.getuid()}-{pid}-", dir="/dev/shm"))
    seen = {"arguments": arguments, "parent": os.getppid(), "session": has_own_session(pid)}
    told = {
        "INFERSCOPE_SEGMENTS": segments,
        "INFERSCOPE_TRACE": output,
        "INFERSCOPE_CALLS": options.get("--calls", "false"),
        "INFERSCOPE_TRACE_SIZE_MB": options.get("--trace-size-mb", "100"),
    }
    if behaviour != "never ready":
        ready = Path(options["--ready"])
        ready.with_name("new").write_text("".join(f"{name}={value}\0" for name, value in told.items()))
        ready.with_name("new").rename(ready)
    while not (segments / "stop").exists():
        answered = behaviour != "never ready" or Path(options["--ready"]).parent.exists()
        if not Path(f"/proc/{pid}").exists() or not segments.exists() or not answered:
            break
        time.sleep(0.005)
    if behaviour == "dies":
        return 1
    seen["segments"] = sorted(path.name for path in segments.glob("*.segment"))
    seen["stopped"] = (segments / "stop").exists()
    report = output / "report.md"
    report.write_text("the report")
    # Last, and whole at once: a test that finds it finds the rest.
    (output / "seen.new").write_text(json.dumps(seen))
    (output / "seen.new").rename(output / "seen.json")
    if not seen["stopped"]:
        shutil.rmtree(segments, ignore_errors=True)
    elif segments.exists():
        # Whole at once: the package reads it as soon as it is there.
        (segments / "done.new").write_text(f"{report}\n")
        (segments / "done.new").rename(segments / "done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
