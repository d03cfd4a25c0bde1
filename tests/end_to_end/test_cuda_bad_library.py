"""A driver or a libcupti that is missing, broken, of the wrong kind or refuses: the program runs as without us,
everything else is recorded, and the reason is in the report and in what `inferscope run` prints."""

import pytest
from fake_gpu import API_CALL, KERNEL, MEMCPY, build
from recording import RECORDING_WINDOW, SCOPE, inferscope

WORK = "repeat 5\nkernel k us=5\nend\nsync device"


def unharmed(seen, state="failed"):
    """The program did its work to the end, and the trace says what the GPU collector did not do."""
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.recorded.out.decode().splitlines()[-1] == "done"
    assert seen.trace.manifest["state"] == "complete"
    if state:
        line = seen.collector()
        assert line["state"] == state, line
        return line["reason"]
    return ""


def told(seen, *words):
    """Both the terminal and the report say it."""
    for place in (seen.recorded.told, seen.trace.report):
        for word in words:
            assert word in place, f"{word!r} is not in:\n{place}"


@pytest.mark.parametrize(
    "symbol",
    [
        "cuptiSubscribe",
        "cuptiEnableCallback",
        "cuptiActivityEnable",
        "cuptiActivityRegisterCallbacks",
        "cuptiActivityGetNextRecord",
        "cuptiActivityFlushAll",
    ],
)
def test_a_libcupti_without_a_symbol_that_is_needed(gpu, symbol):
    seen = gpu.play(WORK, cupti=gpu.libraries.cupti("13.0", without=(symbol,)))
    assert symbol in unharmed(seen)
    assert seen.kernels() == {}
    told(seen, symbol)


@pytest.mark.parametrize(
    "symbol",
    [
        "cuptiActivityRegisterTimestampCallback",
        "cuptiActivitySetAttribute",
        "cuptiActivityGetNumDroppedRecords",
        "cuptiGetResultString",
        "cuptiUnsubscribe",
        "cuptiGetVersion",
    ],
)
def test_a_libcupti_without_a_symbol_that_is_not_needed(gpu, symbol):
    seen = gpu.play(WORK, cupti=gpu.libraries.cupti("13.0", without=(symbol,)))
    unharmed(seen, "on")
    assert seen.kernels() == {"k": 5}
    calls = {row["id"]: row["start_ns"] for row in seen.trace.slices(API_CALL)}
    assert all(row["start_ns"] >= calls[row["correlation"]] for row in seen.work(KERNEL)), "also on CUPTI's own clock"


def test_no_libcupti(gpu):
    seen = gpu.play(WORK, cupti=None)
    assert "libcupti" in unharmed(seen)
    told(seen, "libcupti")


def test_a_libcupti_for_another_machine(gpu, tmp_path):
    wrong = build.for_another_machine(gpu.libraries.cupti("13.0"), tmp_path / "arm" / "libcupti.so.13")
    seen = gpu.play(WORK, cupti=wrong)
    assert "libcupti.so.13" in unharmed(seen)
    told(seen, "libcupti.so.13")


def test_a_libcupti_that_is_no_library(gpu, tmp_path):
    (tmp_path / "text").mkdir()
    wrong = tmp_path / "text" / "libcupti.so.13"
    wrong.write_text("not a library\n")
    seen = gpu.play(WORK, cupti=wrong)
    assert "libcupti.so.13" in unharmed(seen)


def test_the_path_of_libcupti_can_be_given(gpu):
    seen = gpu.play(WORK, cupti=None, INFERSCOPE_CUPTI=str(gpu.libraries.cupti("12.4")))
    assert "libcupti.so.12" in unharmed(seen, "on")
    assert seen.kernels() == {"k": 5}


def test_a_given_path_that_is_wrong_is_said(gpu, tmp_path):
    seen = gpu.play(WORK, INFERSCOPE_CUPTI=str(tmp_path / "nowhere.so"))
    reason = unharmed(seen)
    assert "INFERSCOPE_CUPTI" in reason and "nowhere.so" in reason
    told(seen, "INFERSCOPE_CUPTI")


def test_a_libcupti_of_another_version_than_the_runtime_warns(gpu):
    """CUPTI 12 under CUDA 13 lost kernels silently: it is used when there is no other, and the report says so."""
    runtime, cupti = gpu.libraries.runtime(13), gpu.libraries.cupti("12.6")
    command = ("env", f"LD_PRELOAD={runtime}", gpu.app)
    seen = gpu.play(WORK, cupti=cupti, command=command, INFERSCOPE_CUPTI=str(cupti))
    unharmed(seen, "on")
    assert seen.kernels() == {"k": 5}
    assert "CUDA 12" in seen.notes() and "CUDA 13" in seen.notes(), seen.notes()
    told(seen, "the program runs CUDA 13")


def test_the_libcupti_of_the_programs_own_runtime_is_chosen(gpu):
    """Both 12 and 13 can be loaded; the program runs CUDA 12."""
    both = f"{gpu.libraries.cupti('13.0').parent}:{gpu.libraries.cupti('12.8').parent}:{gpu.libraries.driver()}"
    command = ("env", f"LD_PRELOAD={gpu.libraries.runtime(12)}", f"LD_LIBRARY_PATH={both}", gpu.app)
    seen = gpu.play(WORK, command=command)
    assert "libcupti.so.12" in unharmed(seen, "on")
    assert seen.kernels() == {"k": 5}


@pytest.mark.parametrize("cuda", ["11.8", "13.0", "13.2", "13.4"])
def test_a_driver_that_does_not_start(gpu, cuda):
    """No device: cuInit fails, and CUPTI is left alone (13.2 crashes when it is called then)."""
    seen = gpu.play("cuinit 100", cuda)
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.recorded.out.decode().splitlines()[-1] == "cuInit 100"
    assert not any("cupti" in line for line in seen.log), seen.log


def test_no_driver_at_all(gpu, script):
    """A Python program that never uses CUDA, on a machine without it, is recorded as ever, without complaint."""
    seen = gpu.record(script("from inferscope import scope\nwith scope('x'): pass"))
    assert seen.code == 0
    assert seen.trace.texts(SCOPE) == ["x"]
    assert "CUPTI" not in seen.told and "NVIDIA" not in seen.told


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("cuptiSubscribe", 39),
        ("cuptiSubscribe", 15),
        ("cuptiSubscribe", 999),
        ("cuptiActivityRegisterCallbacks", 1),
        ("cuptiActivityEnable", 35),
        ("cuptiActivityEnable", 40),
    ],
)
def test_a_call_without_which_nothing_works_fails(gpu, function, code):
    seen = gpu.play(f"fail {function} {code}\n{WORK}")
    reason = unharmed(seen)
    assert seen.kernels() == {}
    words = {39: "another profiler", 35: "administrators", 40: "administrators"}.get(code, f"error {code}")
    assert words in reason
    told(seen, words)


@pytest.mark.parametrize(
    "function",
    [
        "cuptiActivityRegisterTimestampCallback",
        "cuptiActivitySetAttribute",
        "cuptiActivityGetNumDroppedRecords",
        "cuptiActivityDisable",
        "cuptiUnsubscribe",
        "cuptiGetTimestamp",
        "cuptiGetVersion",
        "cuptiGetResultString",
    ],
)
def test_any_other_call_fails_and_everything_is_recorded_all_the_same(gpu, function):
    seen = gpu.play(f"fail {function} 7\n{WORK}")
    reason = unharmed(seen, "on")
    assert ("CUPTI's clock" in reason) == (function == "cuptiActivityRegisterTimestampCallback"), reason
    assert seen.collector("launches")["state"] == "on"
    assert seen.kernels() == {"k": 5}
    assert seen.calls() == {"cudaLaunchKernel": 5, "cudaDeviceSynchronize": 1}
    assert seen.lost() == 0
    assert "another profiler" not in seen.notes()


def test_a_flush_fails_and_the_program_does_not_notice(gpu):
    seen = gpu.play(f"fail cuptiActivityFlushAll 999\n{WORK}\ndeliver")
    unharmed(seen, None)
    assert seen.kernels() == {"k": 5}, "deliver gave the records back"


@pytest.mark.parametrize(
    ("detail", "function", "whose"),
    [
        ("launch", "cuptiEnableCallback 999", "the launches"),
        ("all", "cuptiEnableDomain 999", "the calls of the runtime"),
        ("all", "cuptiEnableDomain 999 after=1", "the calls of the driver"),
    ],
)
def test_callbacks_are_refused(gpu, detail, function, whose):
    """Kernels are recorded without the calls that asked for them, and that is said."""
    seen = gpu.play(f"fail {function}\n{WORK}", options=("--gpu-detail", detail))
    unharmed(seen, "on")
    assert seen.kernels() == {"k": 5}
    launches = seen.collector("launches")
    assert launches["state"] == "failed" and f"refuses callbacks for {whose}: error 999" in launches["reason"], launches
    told(seen, "CUDA calls are not recorded", "error 999")
    assert "another profiler" not in seen.notes()


@pytest.mark.parametrize(
    "function", ["cuptiActivityEnable", "cuptiActivityDisable", "cuptiGetTimestamp", "cuptiUnsubscribe"]
)
def test_calls_that_fail_later(gpu, function):
    """It works when the recording starts and fails from some later call on."""
    seen = gpu.play(f"fail {function} 999 after=6\nrepeat 100\n{WORK}\nend")
    unharmed(seen, "on")
    assert seen.kernels() == {"k": 500}
    assert seen.calls()["cudaLaunchKernel"] == 500
    assert seen.lost() == 0


def test_records_that_cannot_be_walked_to(gpu):
    """Behind the first twenty records of a buffer, a device's among them, CUPTI finds none: that is said."""
    seen = gpu.play(f"fail cuptiActivityGetNextRecord 999 after=20\nrepeat 10\n{WORK}\nend")
    unharmed(seen, "on")
    assert seen.kernels() == {"k": 19}
    assert seen.lost() > 0 and "collector-errors" in " ".join(row["reason"] for row in seen.trace.table("losses"))


def test_no_clock_in_common(gpu):
    """CUPTI neither takes our clock nor tells its own: its times since 1970 are not taken for ours."""
    clocks = "fail cuptiActivityRegisterTimestampCallback 999\nfail cuptiGetTimestamp 999"
    seen = gpu.play(f"{clocks}\n{WORK}")
    assert "cuptiGetTimestamp: error 999" in unharmed(seen)
    assert seen.kernels() == {}
    assert [row["count"] for row in seen.trace.table("losses") if row["reason"] == "work-without-time"] == [5]
    assert seen.calls()["cudaLaunchKernel"] == 5, "calls are on our own clock"
    told(seen, "does not take the recorder's clock and does not tell its own", "without a timestamp")
    assert " h " not in seen.recorded.told, "a recording of as many hours as there were since 1970"


@pytest.mark.parametrize("times", [1, 5])
def test_a_clock_that_is_told_only_later(gpu, times):
    clocks = f"fail cuptiActivityRegisterTimestampCallback 999\nfail cuptiGetTimestamp 999 times={times}"
    seen = gpu.play(f"{clocks}\n{WORK}")
    unharmed(seen, "on")
    assert seen.kernels() == {"k": 5}
    calls = {row["id"]: row["start_ns"] for row in seen.trace.slices(API_CALL)}
    for row in seen.work(KERNEL):
        assert 0 <= row["start_ns"] - calls[row["correlation"]] < 10**9, "on one clock with its call"
    assert seen.lost() == 0


def test_no_thread_for_us(gpu):
    """Nothing is recorded then, and CUPTI is free for others."""
    library = gpu.libraries.without_threads()
    seen = gpu.play(f"{WORK}\nsubscribe", command=("env", f"LD_PRELOAD={library}", gpu.app))
    assert "no thread" in unharmed(seen)
    assert "subscribe 0" in seen.recorded.out.decode(), "we are no longer subscribed"
    assert seen.called("cuptiUnsubscribe") == 1
    told(seen, "no thread")


@pytest.mark.parametrize(("cuda", "warned"), [("11.8", True), ("13.0", False)])
def test_a_version_that_is_not_told_is_known_by_the_files_name(gpu, cuda, warned):
    """CUDA graphs hang with versions of before 12.6, and only those are warned of."""
    program = gpu.python("""
        import os, time
        assert driver.cuInit(0) == 0
        until = time.monotonic() + 60
        def flushed(): return open(os.environ["FAKE_CUPTI_LOG"]).read().count("cuptiActivityFlushAll")
        # The second round sees what the first one has delivered.
        while flushed() < 3 and time.monotonic() < until:
            do("graph id=3\\nkernel k node=11 us=5\\nend\\nsync stream")
            time.sleep(0.01)
    """)
    seen = gpu.play("fail cuptiGetVersion 7", cuda, command=(program,))
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.collector()["state"] == "on" and seen.kernels()["k"] > 0
    assert ("may hang under a CUPTI older" in seen.notes()) == warned, seen.notes()
    assert "CUPTI 0" not in seen.collector()["reason"]


@pytest.mark.parametrize(("times", "some"), [(1, True), (1000, False)])
def test_kernels_are_refused_after_a_pause(gpu, times, some):
    """Recorded in windows, CUPTI refuses the kernels of one window, or of all: such a window is an unrecorded one."""
    refused = f"fail cuptiActivityEnable.10 33 after=1 times={times}"
    seen = gpu.play(
        f"{refused}\nrepeat 20000\nkernel k us=10 call=10\nsync stream\nend", options=("--overhead-budget", "2%")
    )
    reason = unharmed(seen)
    assert "after a pause CUPTI refuses to record kernels" in reason
    told(seen, "after a pause CUPTI refuses to record kernels")
    assert (seen.kernels()["k"] > 0) == some
    assert ("GPU recording on" in seen.trace.texts(RECORDING_WINDOW)) == some, "no turn says that it was recorded"
    if not some:
        assert "recorded for 0 % of the time, in 0 windows" in seen.notes(), seen.notes()


def test_only_kinds_that_are_not_needed_are_refused(gpu):
    """CUPTI refuses some kinds (a virtual device, an older version): the others are recorded."""
    others = [1, 2, 8, 17, 22]  # Copies, memsets, devices, overhead, copies between devices.
    refused = "\n".join(f"fail cuptiActivityEnable.{kind} 33" for kind in others)
    seen = gpu.play(f"{refused}\nmemcpy kind=HtoD bytes=1024 us=2\n{WORK}")
    unharmed(seen, "on")
    assert seen.kernels() == {"k": 5}
    assert seen.work(MEMCPY) == []
    names = "what the devices are, copies, copies between devices, fills, CUPTI's own overhead"
    assert f"not recorded: {names}" in seen.collector()["reason"]
    told(seen, names, "this virtual or MIG device does not support it")
    assert seen.notes().count("copies between devices") == 1, "said once"
    asked = {line.split()[-1] for line in seen.log if " enable " in line}
    assert asked == {str(kind) for kind in [*others, 10]}, "each was asked for, and no other"


def test_the_kind_that_is_needed_is_refused(gpu):
    seen = gpu.play(f"fail cuptiActivityEnable.10 33\n{WORK}")
    assert "kernels" in unharmed(seen)
    assert seen.kernels() == {}


def line(words, name):
    """The line of `inferscope doctor` about one thing, without its mark."""
    (found,) = [line for line in words.splitlines() if line[4:].startswith(f"{name} ")]
    return found[2:3], found[4:].removeprefix(name).strip()


def test_doctor_explains_a_missing_libcupti(gpu):
    done = inferscope("doctor", env=gpu.environment("", None))
    words = done.stdout.decode()
    mark, text = line(words, "libcupti")
    assert mark == "✗" and "pip install nvidia-cuda-cupti" in text, words
    assert line(words, "CUDA driver") == ("✓", "libcuda.so.1")


def test_doctor_says_which_libcupti(gpu):
    cupti = gpu.libraries.cupti("13.0")
    words = inferscope("doctor", env=gpu.environment("", cupti)).stdout.decode()
    mark, text = line(words, "libcupti")
    assert mark == "✓" and str(cupti) in text and "LD_LIBRARY_PATH" in text, words
    given = inferscope("doctor", env=gpu.environment("", cupti, INFERSCOPE_CUPTI="/nowhere.so")).stdout.decode()
    mark, text = line(given, "libcupti")
    assert mark == "✗" and "INFERSCOPE_CUPTI names /nowhere.so, which does not exist" in text, given
