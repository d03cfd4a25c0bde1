"""PyTorch's profiler and ours in one process, recording that begins when CUDA already runs, and recording by turns."""

from __future__ import annotations

from pathlib import Path

from case import Case, equal


def inside(case: Case) -> None:
    done = case.record("inside", case.python("profilers.py", "inside"))

    def both() -> None:
        equal(done.code, 0, f"exit ({done.err[-500:]})")
        known = done.known
        equal(known["result"], 300.0, "result")
        if case.dry:
            return
        assert known["theirs"] >= 100, f"torch.profiler saw {known['theirs']} events of the GPU, of at least 100"
        trace = case.trace("inside")
        assert len(trace.kernels) >= known["before"], f"{len(trace.kernels)} kernels before torch.profiler was started"
        told = trace.notes + " ".join(line["reason"] for line in trace.collectors)
        assert "torch.profiler" in told, f"nothing says that torch.profiler took over: {told}"

    case.check("torch.profiler inside our run", both)


def outside(case: Case) -> None:
    done = case.run(case.python("profilers.py", "outside", case.folder / "outside"))

    def both() -> None:
        equal(done.code, 0, f"exit ({done.err[-500:]})")
        known = done.known
        equal(known["result"], 200.0, "result")
        equal(known["started"], True, "recording started")
        assert Path(known["report"]).is_file(), "no report"
        if case.dry:
            return
        assert known["theirs"] >= 200, f"torch.profiler saw {known['theirs']} events of the GPU, of at least 200"
        trace = case.trace("outside")
        told = trace.notes + " ".join(known["said"]) + " ".join(line["reason"] for line in trace.collectors)
        assert "CUPTI" in told, f"nothing says why the GPU was not recorded: {told}"

    case.check("ours inside torch.profiler's", both)


def late(case: Case) -> None:
    done = case.run(case.python("profilers.py", "late", case.folder / "late"))

    def recorded() -> None:
        equal(done.code, 0, f"exit ({done.err[-500:]})")
        known = done.known
        equal(known["result"], 300.0, "result")
        equal(known["started"], True, "recording started")
        if case.dry:
            return
        trace = case.trace("late")
        equal(len(trace.kernels), known["recorded"], f"kernels after the start ({known['said']} {trace.notes})")
        assert any(trace.devices), f"the device has no name: {trace.devices}"

    case.check("recording begins when CUDA already runs", recorded)


def windows(case: Case) -> None:
    done = case.record("windows", case.python("long.py", 6), "--overhead-budget", "2%")

    def recorded() -> None:
        equal(done.code, 0, f"exit ({done.err[-500:]})")
        if case.dry:
            return
        trace = case.trace("windows")
        assert trace.kernels, f"no kernel was recorded ({trace.notes})"
        assert any(trace.devices), f"the device has no name: {trace.devices}"

    case.check("recorded in windows", recorded)
    # With this budget the cost is known after three seconds, and windows are wide enough for what takes three.
    seconds = 0.2 if case.dry else 3
    slow = case.record("slow_steps", case.python("slow_steps.py", 6, seconds), "--overhead-budget", "50%")

    def whole() -> None:
        equal(slow.code, 0, f"exit ({slow.err[-500:]})")
        if case.dry:
            return
        trace = case.trace("slow_steps")
        steps = trace.analysis["steps"]
        assert 0 < steps["count"] < 6, f"steps that lie whole in a window: {steps} ({trace.notes})"

    case.check("a window holds a whole step", whole)
