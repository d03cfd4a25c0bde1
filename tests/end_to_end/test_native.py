"""Native functions stand above the line of Python that called them, with the library that they are in; and where that
cannot be had, the program runs as ever and the trace says why."""

import ctypes
import os
import platform
import struct
import subprocess
import sys
from collections import Counter

import pytest
from recording import INFERSCOPE, Trace, analyze, environment, inferscope

ACTIVE = 1

# Enough of its own processor time for a hundred samples, however busy the machine is.
PACK = """
    import time, zlib

    data = bytes(range(256)) * 2000

    def pack():
        return zlib.compress(data, 9)                      # PACKS

    end = time.thread_time() + 1.5
    while time.thread_time() < end: pack()
"""


def samples(trace):
    """Of each sample of a running thread: its native frames (function, library) from the innermost out, then the Python
    function."""
    names = {row["id"]: (row["text"], row["file"] or "") for row in trace.table("names")}
    rows = {row["id"]: row for row in trace.table("stacks")}
    found = []
    for sample in trace.table("samples"):
        stack, native = sample["stack"], []
        while stack and not (names[rows[stack]["name"]][1].endswith(".py") or names[rows[stack]["name"]][1][:1] == "<"):
            native.append(names[rows[stack]["name"]])
            stack = rows[stack]["parent"]
        if sample["state"] & ACTIVE and stack:
            found.append((native, names[rows[stack]["name"]][0].rsplit(".", 1)[-1]))
    return found


def native_of(trace, function):
    return [native for native, python in samples(trace) if python == function]


def is_named(native):
    return any(not name.startswith("[") for name, _ in native)


@pytest.mark.every_python
def test_the_native_functions_of_a_line_are_named(script, record):
    ours = record(script(PACK))
    assert ours.code == 0, ours.told
    packs = native_of(ours.trace, "pack")
    assert len(packs) > 50
    functions = Counter(name for native in packs for name, library in set(native) if "libz" in library)
    assert functions["deflate"] > 0.9 * len(packs), functions.most_common(5)
    native = [native for native, _ in samples(ours.trace) if native]
    assert sum(map(is_named, native)) >= 0.9 * len(native)
    assert not [note for note in ours.trace.notes if "native" in note]
    told = analyze(ours.trace)
    assert "libz: deflate" in told, told
    # Time is the line's, as it is without native frames.
    assert "pack takes" in told, told


def test_without_native_frames_there_are_none(script, record):
    ours = record(script(PACK), options=("--native=false",))
    assert ours.code == 0 and len(native_of(ours.trace, "pack")) > 50
    assert not any(native for native, _ in samples(ours.trace))


# Each loads a library, says so, and computes in it once its file was changed.
SPIN = "int spin_in_%s(long n) { volatile long sum = 0; for (long i = 0; i < n; i++) sum += i; return (int)sum; }\n"
CHANGED = """
    import ctypes, os, sys, time

    library = ctypes.PyDLL(sys.argv[1])
    {change}

    def spin():
        library.spin_in_first(ctypes.c_long(3_000_000))    # SPINS

    end = time.thread_time() + 1.5
    while time.thread_time() < end: spin()
"""


def compiled(folder, name, *options):
    """A library with one function that takes its time."""
    source, library = folder / f"{name}.c", folder / f"lib{name}.so"
    source.write_text(SPIN % name)
    subprocess.run(["cc", "-shared", "-fPIC", *options, "-o", library, source], check=True)
    return library


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("pass", True),
        # What has no name any more is found by its mapping, which takes a right that not everybody has.
        ("os.remove(sys.argv[1])", os.geteuid() == 0),
        # Another file of that name has another function at the same place.
        ("os.replace(sys.argv[2], sys.argv[1])", os.geteuid() == 0),
    ],
    ids=["as-it-was", "deleted", "replaced"],
)
def test_a_library_whose_file_changes_never_gets_the_names_of_another(script, record, tmp_path, change, named):
    first, second = compiled(tmp_path, "first"), compiled(tmp_path, "second")
    ours = record(sys.executable, script(CHANGED.format(change=change)), first, second)
    assert ours.code == 0, ours.told
    spins = native_of(ours.trace, "spin")
    assert len(spins) > 50
    functions = Counter(name for native in spins for name, _ in set(native))
    assert functions["spin_in_second"] == 0, functions
    assert functions["spin_in_first"] > 0.8 * len(spins) or not named, functions


def test_a_stripped_library_is_named_itself(script, record, tmp_path):
    first = compiled(tmp_path, "first", "-s", "-Wl,--exclude-libs,ALL")
    ours = record(sys.executable, script(CHANGED.format(change="pass")), first)
    spins = native_of(ours.trace, "spin")
    assert ours.code == 0 and len(spins) > 50
    assert sum(any("libfirst.so" in library for _, library in native) for native in spins) > 0.8 * len(spins)


def test_processes_that_fork_and_become_another_program_are_named_too(script, record):
    path = script(
        """
        import os, sys, time, zlib

        data = bytes(range(256)) * 2000

        def pack_in_parent(): zlib.compress(data, 9)
        def pack_in_child(): zlib.compress(data, 9)
        def pack_in_other(): zlib.compress(data, 9)

        def work(pack):
            end = time.thread_time() + 1
            while time.thread_time() < end: pack()

        if len(sys.argv) > 1:
            work(pack_in_other)
            os._exit(0)
        child = os.fork()
        if child == 0:
            work(pack_in_child)
            os.execv(sys.executable, [sys.executable, __file__, "other"])
        work(pack_in_parent)
        os.waitpid(child, 0)
        """
    )
    ours = record(path)
    assert ours.code == 0, ours.told
    for function in ("pack_in_parent", "pack_in_child", "pack_in_other"):
        packs = native_of(ours.trace, function)
        named = [native for native in packs if any(name == "deflate" for name, _ in native)]
        assert packs and len(named) > 0.5 * len(packs), (function, len(packs), len(named))


def forbid_perf_events():
    """In the child before it becomes the command: what a container's filter does."""
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050001  # EPERM
    rules = [(load, 0, 0, 0), (jump_if_equal, 0, 1, number), (give, 0, 0, refuse), (give, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())  # PR_SET_SECCOMP


def test_where_the_kernel_refuses_the_trace_and_doctor_name_the_setting(script, trace):
    command = [INFERSCOPE, "run", "--output", trace, "--", script(PACK)]
    done = subprocess.run(command, capture_output=True, env=environment(), preexec_fn=forbid_perf_events)
    assert done.returncode == 0, done.stderr.decode()
    recorded = Trace(trace)
    [note] = [note for note in recorded.notes if "native" in note]
    # Root's own sentence where the machine restricts them anyway.
    assert "seccomp" in note or "perf_event_paranoid" in note, note
    assert len(native_of(recorded, "pack")) > 50
    assert note in " ".join(analyze(recorded).split())
    doctor = subprocess.run([INFERSCOPE, "doctor"], capture_output=True, text=True, preexec_fn=forbid_perf_events)
    [line] = [line for line in doctor.stdout.splitlines() if "native frames" in line]
    assert "seccomp" in line or "perf_event_paranoid" in line, line


def test_doctor_says_that_they_can_be_had():
    [line] = [line for line in inferscope("doctor").stdout.decode().splitlines() if "native frames" in line]
    assert "perf events" in line
