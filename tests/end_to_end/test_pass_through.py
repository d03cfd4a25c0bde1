"""The command under `inferscope run` behaves as without it: output, input, exit code, signals, folder, arguments."""

import fcntl
import os
import signal
import subprocess
import sys
import termios

import pytest
from recording import PATIENCE_S, environment, signalled

pytestmark = pytest.mark.every_python

NOISY = """
    import os, sys
    sys.stdout.buffer.write(bytes(range(256)) * 40)
    sys.stderr.buffer.write(b"to stderr \\xff\\x00\\r\\n" * 300)
    sys.stdout.flush(); sys.stderr.flush()
    os.write(1, b"straight to 1"); os.write(2, b"straight to 2")
    print(sys.argv[1:], os.getcwd(), sys.stdin.read())
"""


def test_output_is_byte_identical(script, record, tmp_path):
    path = script(NOISY)
    arguments = ["--looks", "like", "an option", "--output", "ümläut", ""]
    alone = subprocess.run(
        [sys.executable, path, *arguments], input=b"from stdin", capture_output=True, env=environment(), cwd=tmp_path
    )
    ours = record(sys.executable, path, *arguments, options=("--quiet",), input=b"from stdin", cwd=tmp_path)
    assert ours.out == alone.stdout
    assert ours.err == alone.stderr
    assert ours.code == alone.returncode == 0


def test_a_script_whose_name_looks_like_an_option_is_run(script, record, tmp_path):
    script("print('here')", "-c.py")
    ours = record("-c.py", cwd=tmp_path)
    assert (ours.code, ours.out) == (0, b"here\n"), ours.err


def test_without_quiet_the_commands_own_output_is_still_untouched(script, record, tmp_path):
    """Our own lines go after the command's, on stderr: stdout belongs to the command alone."""
    path = script(NOISY)
    alone = subprocess.run([sys.executable, path], input=b"", capture_output=True, env=environment(), cwd=tmp_path)
    ours = record(sys.executable, path, input=b"", cwd=tmp_path)
    assert ours.out == alone.stdout
    assert alone.stderr in ours.err


@pytest.mark.parametrize("code", [0, 1, 2, 5, 42, 126, 127, 130, 255])
def test_the_exit_code_passes_through(script, record, code):
    assert record(script(f"import sys; sys.exit({code})")).code == code


def test_an_exception_is_exit_code_1_with_its_traceback(script, record):
    ours = record(script("raise ValueError('planted')"))
    assert ours.code == 1
    assert "ValueError: planted" in ours.told
    assert ours.trace.manifest["exit"] == {"code": 1}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
def test_death_by_signal_passes_through(script, record, number):
    ours = record(script(f"import os; os.kill(os.getpid(), {int(number)})"))
    assert signalled(ours.code, number)
    assert ours.trace.manifest["exit"] == {"signal": number}


HANDLER = """
    import signal, sys, time
    def handler(number, frame):
        print("got", number, flush=True)
        sys.exit(7)
    signal.signal({number}, handler)
    print("ready", flush=True)
    while True: time.sleep(0.05)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_the_recorder_reaches_the_command_once(script, start, number):
    recording = start(script(HANDLER.format(number=int(number))))
    assert recording.line() == "ready"
    os.kill(recording.process.pid, number)
    ours = recording.finish()
    assert ours.out.decode().split("\n") == [f"got {int(number)}", ""]
    assert ours.code == 7
    assert ours.trace.manifest["state"] == "complete"


COUNTS_INTERRUPTS = """
    import signal, sys, time
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    print("ready", flush=True)
    while not seen: time.sleep(0.01)
    sys.stdin.readline()
    print("interrupts", len(seen), flush=True)
    sys.exit(7)
"""


def wait_for(terminal, text):
    seen = b""
    while text not in seen:
        piece = terminal.read(1000)
        assert piece, f"the terminal closed before {text!r}: {seen!r}"
        seen += piece


def test_ctrl_c_in_a_terminal_reaches_the_command_once(script, start):
    """The terminal sends it to the whole group: the command has it already, and must not get a second one."""
    ours, theirs = os.openpty()
    recording = start(
        script(COUNTS_INTERRUPTS),
        stdin=theirs,
        stdout=theirs,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    terminal = os.fdopen(ours, "r+b", buffering=0)
    wait_for(terminal, b"ready")
    terminal.write(b"\x03")
    terminal.write(b"\n")
    wait_for(terminal, b"interrupts 1")
    assert recording.process.wait(PATIENCE_S) == 7


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_without_a_handler_dies_of_the_signal_and_the_trace_is_complete(start, number):
    recording = start("sh", "-c", "echo ready; exec sleep 600")
    assert recording.line() == "ready"
    os.kill(recording.process.pid, number)
    ours = recording.finish()
    assert signalled(ours.code, number)
    assert ours.trace.manifest["exit"] == {"signal": number}


def test_any_program_can_be_recorded(record):
    ours = record("sh", "-c", "echo to stdout; echo to stderr >&2; exit 3")
    assert (ours.code, ours.out) == (3, b"to stdout\n")
    assert ours.trace.manifest["state"] == "complete"
