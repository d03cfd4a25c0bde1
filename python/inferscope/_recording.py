"""Starting and stopping. Under `inferscope run` a recorder is there already and this process joins it; alone, the
package starts one, detached, over the same kind of segment."""

import os
import sys
from _thread import RLock

from . import _surface

# Not from typing: importing that takes longer than everything else here together.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._alone import Recorder

_warned: "set[str]" = set()
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


class _This:
    """What this process has going on."""

    recorder: "Recorder | None" = None
    report: "str | None" = None
    lock = RLock()


# A thread that is not in the child may have held it. The lock's own function, as `threading` does it: one of ours would
# be among what a program that traces its children sees.
os.register_at_fork(after_in_child=_This.lock._at_fork_reinit)  # type: ignore[attr-defined]


def start(
    output: "str | os.PathLike[str] | None" = None,
    *,
    rate_hz: int | None = None,
    native: bool | None = None,
    calls: bool | str | None = None,
    include: "Sequence[str] | None" = None,
    exclude: "Sequence[str] | None" = None,
    min_us: int | None = None,
    trace_size_mb: int | None = None,
    memory_hz: float | None = None,
    gpu_detail: str | None = None,
    overhead_budget: float | str | None = None,
    layers: bool | None = None,
    entries: bool | None = None,
    ops: bool | None = None,
    memory_events: str | None = None,
    memory_stacks_kb: int | None = None,
    retainers: bool | None = None,
    device_hz: float | None = None,
) -> bool:
    """Starts recording this process and the ones it starts; True if it is being recorded now.

    Under ``inferscope run`` this joins the recorder that is there, and the options are the command's. Alone it starts
    one; each option left out is taken from ``INFERSCOPE_*``, ``.inferscope.yaml`` or the default, as for the command.
    Starting twice is the same as once. If recording is not possible, one warning says why and the program goes on.

        inferscope.start(calls=True, include=["my_model"])
        ...
        inferscope.stop()
        print(inferscope.report_path())

    :param output: Write the trace to this folder (default: a new one in ./inferscope-traces)
    :param rate_hz: Stack samples per second, 1 to 1000. ``start(rate_hz=0)`` samples none, as ``--no-stacks`` does.
    :param native: Sample native (C/C++/Rust) functions under the Python line that calls them
    :param calls: Record every Python call; ``c`` also records calls of C functions
    :param include: Record only calls in these modules, packages or path patterns (default: all)
    :param exclude: Skip calls in these modules, packages or path patterns (default: none)
    :param min_us: Skip calls shorter than this
    :param trace_size_mb: Shared memory per process; CUDA programs use as much again, up to 64 MiB. Reduced
        automatically if memory limits are low.
    :param memory_hz: Memory and thread readings per second; 0 turns them off
    :param gpu_detail: CUDA detail: off, kernel (GPU work only), launch (and its launch calls), all (every CUDA call)
    :param overhead_budget: Record CUDA in windows so that recording slows the program by at most this on average; auto:
        10% (1% for CUDA graphs), only if recording everything would exceed it; none: record everything
    :param layers: Record which nn.Module runs: kernels and, without a GPU, CPU time by layer
    :param entries: Record calls into known entry points: models, request handlers
    :param ops: Record PyTorch's operators, with shapes and data flow, in a few steps that no figure includes
    :param memory_events: Record every block that PyTorch's allocators hand out: none, gpu, all (also on the CPU). Of
        the GPU only where CUDA is recorded (not with ``--gpu-detail off``).
    :param memory_stacks_kb: Record the Python stack of every block of 1 MiB and more, and of smaller ones about once
        per this many KiB; 0 for none
    :param retainers: When a program with PyTorch ends, find what keeps its largest tensors alive (goes over all its
        objects, for at most 5 s)
    :param device_hz: GPU clock, power and memory readings per second; 0 turns them off
    """
    # A copy: whoever looks at this frame, as debuggers do, writes later variables into the other.
    options = dict(locals())
    try:
        with _This.lock:
            _start(options.pop("output"), options)
        return True
    except Exception as reason:  # Whatever it is, it is not the program's business.
        _warn(f"nothing is recorded: {reason}")
        return False


def _start(output: "str | os.PathLike[str] | None", options: "dict[str, Any]") -> None:
    if _surface.native_error is not None:
        raise RuntimeError(f"the native library cannot be loaded ({_surface.native_error})")
    from . import _native

    if _native.is_recording() or _join() is None:
        return
    from . import _alone

    _This.recorder = _alone.Recorder(output, options, join=_join)
    _This.report = _This.recorder.report
    for name, state, message in _native.status():
        if state == "failed":
            _warn(f"{name} not recorded: {message}")
    from . import _driver

    reason = _driver.start()
    if reason is not None:
        _warn(f"the GPU is not recorded: {reason}")


def stop(timeout: float = 60.0) -> str | None:
    """Stops recording and waits until the report is written, at most `timeout` seconds. Returns where it is.

    Under ``inferscope run`` only this process stops; the command writes the report when the program ends.
    """
    if _surface.native_error is not None:
        return None
    from . import _native

    with _This.lock:
        _native.stop()
        recorder, _This.recorder = _This.recorder, None
        if recorder is not None and recorder.is_ours():
            _This.report = recorder.finish(timeout)
    return report_path()


def is_recording() -> bool:
    """Whether what this process does is being recorded now."""
    if _surface.native_error is not None:
        return False
    from . import _native

    return _native.is_recording()


def report_path() -> str | None:
    """Where the report is, or will be. None if nothing was recorded."""
    if _This.report is None and is_recording() and os.environ.get("INFERSCOPE_TRACE"):
        return os.path.join(os.environ["INFERSCOPE_TRACE"], "report.md")
    return _This.report


def begin_if_asked() -> None:
    """At import: joins a recorder that is there, or starts one if the environment says so. Never fails."""
    try:
        reason = _join() if os.environ.get("INFERSCOPE_SEGMENTS") else ""
        enable = os.environ.get("INFERSCOPE_ENABLE")
        if reason is not None and enable:
            _start_if(enable)
        elif reason:
            from . import _settings

            if _settings.verbose():
                print(f"inferscope: this process is not recorded: {reason}", file=sys.stderr)
    except Exception as error:
        _warn(f"nothing is recorded: {error}")


def _start_if(enable: str) -> None:
    from . import _settings

    wanted = _settings.truth(enable)
    if wanted is None:
        _warn(f"nothing is recorded: INFERSCOPE_ENABLE={enable}: must be true or false")
    elif wanted:
        start()


def _join() -> str | None:
    """Records into the folder that the environment names. Returns why not, or None."""
    folder = os.environ.get("INFERSCOPE_SEGMENTS")
    if not folder or not os.path.isdir(folder):
        return f"the recorder's folder {folder} is gone" if folder else "no recorder is running"
    if _surface.native_error is not None:
        return f"the native library cannot be loaded ({_surface.native_error})"
    from . import _native, _program

    reason = _native.start(_program.program(), _program.version(), _PACKAGE)
    if reason is None:
        from . import _entries, _torch

        _torch.follow()
        _entries.follow()
        if os.environ.get("INFERSCOPE_FIX"):
            from . import _fixes

            _fixes.begin()
    return reason


def _warn(text: "Any") -> None:
    """Once for each reason."""
    text = f"inferscope: {text}"
    if text not in _warned:
        _warned.add(text)
        import warnings

        try:
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        except RuntimeWarning:
            # With -W error a warning is an exception, and the program would end because it is not recorded.
            print(text, file=sys.stderr)
