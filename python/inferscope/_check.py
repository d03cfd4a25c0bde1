"""Limits for a block of a program: it is recorded by itself, and `inferscope check` decides. Behind the pytest fixture
`inferscope_check`; a limit that is passed, or that nothing was measured for, is an AssertionError."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from types import TracebackType
from typing import Any

from . import _binary, _recording
from ._surface import step

# How the block is named in the trace.
_BLOCK = "inferscope_check"


class Checks:
    """Makes a check for each block. Their traces lie in one folder, for a look at what was too much."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        self._count = 0

    def __call__(
        self,
        *,
        max_kernels: float | None = None,
        max_implicit_syncs: float | None = None,
        max_gpu_mib: float | None = None,
        max_copied_mib: float | None = None,
        min_gpu_busy: float | str | None = None,
        max_step_ms: float | None = None,
        max_p99_ms: float | None = None,
        max_rss_mib: float | None = None,
        step: str | None = None,
        max_mib: float | None = None,
    ) -> Check:
        """Limits for the block, as ``inferscope check`` takes them.

        :param max_kernels: maximum kernels launched
        :param max_implicit_syncs: maximum small copies to the host that block it: ``.item()``, ``nonzero``
        :param max_gpu_mib: maximum GPU memory of this process at any time, in MiB
        :param max_copied_mib: maximum copied between host and GPU, in MiB
        :param min_gpu_busy: minimum share of the time in which the GPU is busy, ``"60%"`` or ``0.6``
        :param max_step_ms: maximum time in ms; with ``step``, the maximum median
        :param max_p99_ms: maximum 99th percentile of the time of ``step``, in ms
        :param max_rss_mib: maximum resident memory of this process at any time, in MiB
        :param step: a step or scope inside the block: the limits apply per step, not to the block (median for time,
            mean otherwise)
        :param max_mib: the former name of ``max_gpu_mib``
        """
        limits = {
            "--max-kernels": max_kernels,
            "--max-implicit-syncs": max_implicit_syncs,
            "--max-gpu-mib": max_gpu_mib,
            "--max-copied-mib": max_copied_mib,
            "--min-gpu-busy": min_gpu_busy,
            "--max-step-ms": max_step_ms,
            "--max-p99-ms": max_p99_ms,
            "--max-rss-mib": max_rss_mib,
            "--max-mib": max_mib,
        }
        flags = [word for flag, limit in limits.items() if limit is not None for word in (flag, str(limit))]
        if not flags:
            raise TypeError("nothing to check: name a limit, such as inferscope_check(max_step_ms=50)")
        self._count += 1
        return Check(os.path.join(self._folder, f"trace-{self._count}"), flags, step)


class Check:
    """Records what happens between enter and exit, and then decides."""

    def __init__(self, trace: str, flags: list[str], step: str | None) -> None:
        self._trace = trace
        self._flags = flags
        self._step = step
        self._block: Any = None

    def __enter__(self) -> Check:
        __tracebackhide__ = True
        if self._block is not None:
            raise RuntimeError(
                "this check has already recorded its block: call inferscope_check() again for the next one"
            )
        if _recording.is_recording():
            raise AssertionError(
                "not measured: this process is already being recorded, and a check needs a recording of its own: run "
                "the tests without `inferscope run`, and do not start a recording around the block"
            )
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            # A test's block is no run that `inferscope analyze` should open without being told to.
            os.environ["INFERSCOPE_UNLISTED"] = "1"
            try:
                # A limit is of everything that the block does: windows would count a part of it.
                started = _recording.start(self._trace, overhead_budget="none")
            finally:
                os.environ.pop("INFERSCOPE_UNLISTED", None)
        if not started:
            raise AssertionError(f"not measured: {'; '.join(str(one.message) for one in said) or 'no reason is known'}")
        _finish_gpu_work()
        self._block = step(_BLOCK)
        self._block.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        try:
            if kind is None:
                _finish_gpu_work()
        finally:
            self._block.__exit__(kind, error, traceback)
            _recording.stop()
        if kind is None:
            self._decide()

    def _decide(self) -> None:
        __tracebackhide__ = True
        binary = _binary.find()
        if binary is None:
            raise AssertionError("not measured: the inferscope command was not found; reinstall the package")
        # The test's own settings are for its program.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("INFERSCOPE_")}
        command = [binary, "check", self._trace, "--step", self._step or _BLOCK, "--format", "json", *self._flags]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            check=False,
        )
        if done.returncode == 0:
            return
        if done.returncode == 2:
            raise ValueError(done.stderr.removeprefix("inferscope: ").strip())
        lines = _broken(done.stdout) or [line.removeprefix("inferscope: ") for line in done.stderr.splitlines()]
        # The first line is all that pytest's summary has room for.
        why = "limit exceeded" if done.returncode == 4 else "not measured"
        look = f"look at it: inferscope analyze {self._trace}"
        raise AssertionError("\n  ".join([f"{why}: {lines[0] if lines else 'no reason is known'}", *lines[1:], look]))


def _broken(document: str) -> list[str]:
    """A line for each limit that does not hold or that nothing was measured for; none where nothing was decided."""
    if not document:
        return []
    said = {"failed": "FAILED {asked}: {said}", "undecided": "{asked}: no data ({said})"}
    limits = json.loads(document)["limits"]
    return [said[limit["state"]].format_map(limit) for limit in limits if limit["state"] in said]


def _finish_gpu_work() -> None:
    """What was launched before the block is no part of it, and what it launched is, whenever it runs."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except Exception:
        pass  # The block's own error, if any, is what matters.
