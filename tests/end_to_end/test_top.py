"""`inferscope top`: in a real terminal, beside a real recording, on programs that end or are killed meanwhile."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
from fcntl import ioctl
from pathlib import Path
from termios import ECHO, ICANON, TIOCSWINSZ, tcgetattr

import pyte
import pytest
from recording import INFERSCOPE, PATIENCE_S, environment, inferscope, until

BUSY = """
    import sys, time

    def hash_of(count):
        return sum(number * number % 7 for number in range(count))

    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        hash_of(20000)
"""


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, *words: object, folder: Path, lines: int = 24, columns: int = 80) -> None:
        self.leader, follower = pty.openpty()
        ioctl(follower, TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = tcgetattr(follower)[3] & (ECHO | ICANON)
        self.follower = follower
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.sent = b""
        self.process = subprocess.Popen(
            [INFERSCOPE, *map(str, words)],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            cwd=folder,
            env=environment() | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )

    def read(self) -> str:
        """What is on the screen now."""
        while select.select([self.leader], [], [], 0)[0]:
            try:
                sent = os.read(self.leader, 1 << 16)
            except OSError:
                break
            self.sent += sent
            self.stream.feed(sent)
        return "\n".join(self.screen.display)

    def shows(self, *parts: str) -> None:
        try:
            until(lambda: all(part in self.read() for part in parts), f"{parts} on the terminal")
        except AssertionError:
            raise AssertionError(f"{parts} never came:\n{self.read()}") from None

    def press(self, keys: str) -> None:
        os.write(self.leader, keys.encode())

    def end(self) -> int:
        until(lambda: (self.read(), self.process.poll() is not None)[1], "top to end")
        return self.process.returncode

    def given_back(self) -> bool:
        self.read()
        return tcgetattr(self.follower)[3] & (ECHO | ICANON) == self.before and b"\x1b[?1049l" in self.sent


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def start(*words: object, **sizes: int) -> Terminal:
        opened.append(Terminal(*words, folder=tmp_path, **sizes))
        return opened[-1]

    yield start
    for one in opened:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait()
        os.close(one.leader)
        os.close(one.follower)


def test_a_program_is_recorded_and_shown_until_somebody_quits(terminal, script, tmp_path):
    shown = terminal("top", "--", sys.executable, script(BUSY), 600)
    shown.shows("recording", "hash_of")
    shown.press("4")
    shown.shows("own", "total")
    shown.press("q")
    assert shown.end() == 0
    assert shown.given_back()
    assert b"recorded to " in shown.sent
    (log,) = tmp_path.glob("inferscope-traces/*.output.txt")
    trace = log.with_name(log.name.removesuffix(".output.txt"))
    manifest = json.loads((trace / "manifest.json").read_text())
    assert manifest["state"] == "complete", "what top started was ended as Ctrl-C does"
    assert "KeyboardInterrupt" in log.read_text()


def test_a_running_process_is_recorded_by_its_number(terminal, script):
    program = subprocess.Popen([sys.executable, script(BUSY), "600"])
    try:
        shown = terminal("top", program.pid)
        shown.shows("recording", "hash_of")
        shown.press("q")
        assert shown.end() == 0
        assert program.poll() is None, "it was running before, and goes on"
    finally:
        program.kill()
        program.wait()


def test_joining_a_recording_changes_nothing_of_it(start, terminal, script, trace):
    recording = start(sys.executable, script(BUSY), 600)
    until((trace / "manifest.json").exists, "the recording to begin")
    viewers = [terminal("top", trace), terminal("top", trace, lines=5, columns=20)]
    viewers[0].shows("recording", "hash_of")
    # One viewer is killed, one quits: the recording goes on.
    viewers[0].process.kill()
    viewers[1].press("q")
    assert viewers[1].end() == 0
    assert recording.process.poll() is None
    os.kill(recording.process.pid, signal.SIGTERM)
    recording.process.wait(PATIENCE_S)
    assert json.loads((trace / "manifest.json").read_text())["state"] == "complete"


def test_a_program_that_is_killed_is_said_to_have_ended(start, terminal, script, trace):
    recording = start(sys.executable, script(BUSY), 600)
    until((trace / "manifest.json").exists, "the recording to begin")
    shown = terminal("top", trace)
    shown.shows("recording", "hash_of")
    program = json.loads((trace / "manifest.json").read_text())["processes"][0]["pid"]
    os.kill(program, signal.SIGKILL)
    recording.process.wait(PATIENCE_S)
    shown.shows("ended")
    shown.press("q")
    assert shown.end() == 0


def test_a_line_of_json_a_second_until_the_recording_ends(start, script, trace):
    recording = start(sys.executable, script(BUSY), 6)
    until((trace / "manifest.json").exists, "the recording to begin")
    done = subprocess.run([INFERSCOPE, "top", trace, "--json"], capture_output=True, text=True, timeout=PATIENCE_S)
    recording.process.wait(PATIENCE_S)
    assert done.returncode == 0, done.stderr
    models = [json.loads(line) for line in done.stdout.splitlines()]
    assert {model["state"] for model in models[:-1]} == {"recording"}
    assert models[-1]["state"] == "ended"
    # Newer and newer, and what is shown is not old.
    ends = [model["clock"]["end_ns"] for model in models[:-1]]
    assert ends == sorted(set(ends))
    assert all(model["clock"]["lag_ns"] is not None for model in models[:-1])
    assert any("hash_of" in function["name"] for function in models[-1]["functions"])


def test_a_full_pipe_or_a_reader_that_leaves_ends_it(start, script, trace):
    recording = start(sys.executable, script(BUSY), 600)
    until((trace / "manifest.json").exists, "the recording to begin")
    top = subprocess.Popen([INFERSCOPE, "top", trace, "--json"], stdout=subprocess.PIPE)
    assert top.stdout.readline().startswith(b"{")
    top.stdout.close()
    top.wait(PATIENCE_S)
    assert recording.process.poll() is None
    os.kill(recording.process.pid, signal.SIGTERM)
    recording.process.wait(PATIENCE_S)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothere", "--once"], "there is no trace at nothere"),
        (["--once", "--", "true"], "--once shows a recording that is there"),
        (["999999999", "--json"], "999999999"),
        (["--json", "--", "no-such-program"], "no-such-program"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(words, said, tmp_path):
    done = inferscope("top", *words, cwd=tmp_path)
    assert done.returncode not in (0, 101), done.stdout
    assert said in done.stderr.decode(), done.stderr
    assert not list(tmp_path.glob("inferscope-traces/*.output.txt"))


def test_without_a_terminal_it_says_what_to_add(tmp_path):
    done = inferscope("top", cwd=tmp_path)
    assert done.returncode == 2
    assert b"--once" in done.stderr
    assert b"--json" in done.stderr


def test_a_terminal_that_vanishes_ends_it(start, terminal, script, trace):
    recording = start(sys.executable, script(BUSY), 600)
    until((trace / "manifest.json").exists, "the recording to begin")
    shown = terminal("top", trace)
    shown.shows("recording")
    os.close(shown.leader)
    shown.leader = os.open(os.devnull, os.O_RDWR)
    shown.process.wait(PATIENCE_S)
    assert recording.process.poll() is None
    os.kill(recording.process.pid, signal.SIGTERM)
    recording.process.wait(PATIENCE_S)
