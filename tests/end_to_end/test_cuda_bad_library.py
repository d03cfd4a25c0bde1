"""A driver or a libcupti that is missing, broken, of the wrong kind or refuses: the program runs as without us,
everything else is recorded, and the reason is in the report and in what `inferscope run` prints."""

import pytest
from fake_gpu import API_CALL, KERNEL, MEMCPY, build
from recording import SCOPE, inferscope

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
        "cuptiActivityFlushAll",
        "cuptiActivityGetNumDroppedRecords",
        "cuptiActivityDisable",
        "cuptiUnsubscribe",
        "cuptiGetTimestamp",
        "cuptiGetVersion",
        "cuptiEnableCallback",
        "cuptiGetResultString",
    ],
)
def test_any_other_call_fails_and_the_program_does_not_notice(gpu, function):
    seen = gpu.play(f"fail {function} 999\n{WORK}\ndeliver")
    unharmed(seen, None)
    assert seen.kernels() == {"k": 5}, "deliver gave the records back"


def test_calls_fail_later(gpu):
    """Every function works when the recording starts and fails from its second call on."""
    functions = ["cuptiActivityFlushAll", "cuptiActivityEnable", "cuptiActivityDisable", "cuptiGetTimestamp",
                 "cuptiActivityGetNextRecord", "cuptiUnsubscribe"]  # fmt: skip
    failing = "\n".join(f"fail {function} 999 after=20" for function in functions)
    seen = gpu.play(f"{failing}\nrepeat 100\n{WORK}\nend\ndeliver")
    unharmed(seen, None)
    assert sum(seen.kernels().values()) <= 500


def test_only_kinds_that_are_not_needed_are_refused(gpu):
    """CUPTI refuses some kinds (a virtual device, an older version): the others are recorded."""
    others = [1, 2, 8, 17, 22]  # Copies, memsets, devices, overhead, copies between devices.
    refused = "\n".join(f"fail cuptiActivityEnable.{kind} 33" for kind in others)
    seen = gpu.play(f"{refused}\nmemcpy kind=HtoD bytes=1024 us=2\n{WORK}")
    unharmed(seen, "on")
    assert seen.kernels() == {"k": 5}
    assert seen.work(MEMCPY) == []
    asked = {line.split()[-1] for line in seen.log if " enable " in line}
    assert asked == {str(kind) for kind in [*others, 10]}, "each was asked for, and no other"


def test_the_kind_that_is_needed_is_refused(gpu):
    seen = gpu.play(f"fail cuptiActivityEnable.10 33\n{WORK}")
    assert "kernels" in unharmed(seen)
    assert seen.kernels() == {}


def test_doctor_explains(gpu):
    env = gpu.environment("", None)
    done = inferscope("doctor", env=env)
    words = done.stdout.decode() + done.stderr.decode()
    assert "CUPTI" in words or "libcupti" in words, words
