"""Settings from flags, environment and .inferscope.yaml: who wins, what is refused, and with which sentence; for the
command and for `inferscope.start()` alike."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from recording import CALL, PATIENCE_S, Trace, environment, inferscope

RECORDS_ITSELF = """
    import inferscope
    def work(): return 1
    print(inferscope.start({options}))
    work()
    print(inferscope.stop())
"""


def show(folder, *options, **environ):
    done = inferscope(*options, "config", "show", cwd=folder, env=environment(**environ))
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def line(shown, key):
    (found,) = [one for one in shown.splitlines() if one.split() and one.split()[0].rstrip(":=") == key]
    return found


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(tmp_path):
    assert "default" in line(show(tmp_path), "rate_hz")
    (tmp_path / ".inferscope.yaml").write_text("rate_hz: 250\n")
    from_file = line(show(tmp_path), "rate_hz")
    assert "250" in from_file
    assert ".inferscope.yaml" in from_file
    from_environment = line(show(tmp_path, INFERSCOPE_RATE_HZ="333"), "rate_hz")
    assert "333" in from_environment
    assert "INFERSCOPE_RATE_HZ" in from_environment


def test_the_file_is_searched_upwards(tmp_path):
    (tmp_path / ".inferscope.yaml").write_text("rate_hz: 250\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert "250" in line(show(below), "rate_hz")


def test_a_flag_wins_over_all(script, record, tmp_path):
    (tmp_path / ".inferscope.yaml").write_text("rate_hz: 250\n")
    ours = record(script("pass"), options=("--rate", "77"), cwd=tmp_path, env=environment(INFERSCOPE_RATE_HZ="333"))
    assert ours.trace.manifest["settings"]["rate_hz"] == 77


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rate_hertz: 100\n", "rate_hz"),
        ("rate_hz: [1, 2\n", ".inferscope.yaml"),
        ("rate_hz: many\n", "rate_hz"),
        ("- a list\n", ".inferscope.yaml"),
        ("rate_hz: 1\nrate_hz: 2\n", "rate_hz"),
        ("\tx: 1", ".inferscope.yaml"),
        ("a: &a [*a]\n", ".inferscope.yaml"),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(tmp_path, text, expected):
    (tmp_path / ".inferscope.yaml").write_text(text)
    for command in (["config", "show"], ["run", "--", "true"]):
        done = inferscope(*command, cwd=tmp_path)
        assert done.returncode in (1, 2, 5), done.stdout
        assert expected in done.stderr.decode(), done.stderr.decode()
        assert b"panicked" not in done.stderr
    assert not (tmp_path / "inferscope-traces").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--rate", "-1"],
        ["--rate", "1000000000"],
        ["--rate", "fast"],
        ["--trace-size-mb", "0"],
        ["--trace-size-mb", "99999999999999999999"],
        ["--memory-hz", "nan"],
        ["--memory-hz", "-5"],
        ["--min-us", "-1"],
        ["--no-such-option"],
        ["--calls=sometimes"],
    ],
)
def test_absurd_values_are_refused_before_anything_starts(tmp_path, options):
    done = inferscope("run", *options, "--", "sh", "-c", "echo started", cwd=tmp_path)
    assert done.returncode == 2, done.stderr.decode()
    assert done.stdout == b""
    assert options[0].split("=")[0] in done.stderr.decode()


def test_absurd_values_in_the_environment_are_refused_too(tmp_path):
    environ = environment(INFERSCOPE_RATE_HZ="lots")
    done = inferscope("run", "--", "sh", "-c", "echo started", cwd=tmp_path, env=environ)
    assert done.returncode == 2
    assert b"INFERSCOPE_RATE_HZ" in done.stderr


def test_doctor_says_what_can_be_recorded_here(tmp_path):
    done = inferscope("doctor", cwd=tmp_path)
    told = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    for word in ("stacks", "scopes", "calls", "memory", "/dev/shm"):
        assert word in told.lower(), told


def test_help_and_version_cost_nothing_and_name_every_command():
    done = inferscope("--help")
    assert done.returncode == 0
    for command in ("run", "attach", "analyze", "export", "doctor", "config"):
        assert command in done.stdout.decode()
    version = inferscope("--version").stdout.decode().split()
    import inferscope as package

    assert version == ["inferscope", package.__version__]


@pytest.fixture
def alone(script, tmp_path):
    """Runs a program that calls `start` with these options, and gives its trace."""

    def run(options="", **environ):
        done = subprocess.run(
            [sys.executable, script(RECORDS_ITSELF.format(options=options))],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(**environ),
            timeout=PATIENCE_S,
        )
        started, report = done.stdout.splitlines()
        assert (done.returncode, done.stderr, started) == (0, "", "True")
        return Trace(Path(report).parent)

    return run


def of(trace, key):
    return trace.manifest["settings"][key]


def collectors(trace):
    (process,) = trace.manifest["processes"]
    return {one["name"]: one["state"] for one in process["collectors"]}


def test_start_does_what_the_file_says(alone, tmp_path):
    (tmp_path / ".inferscope.yaml").write_text(
        "calls: true\noutput: there\nrate_hz: 250\ncalls_include: __main__\ntrace_size_mb: 8\ndevice_hz: 0\n"
    )
    trace = alone()
    assert trace.folder == tmp_path / "there"
    assert [of(trace, key) for key in ("calls", "rate_hz", "trace_size_mb", "device_hz")] == [True, 250, 8, 0]
    # What was asked for is what was done, in the process too.
    assert collectors(trace)["calls"] == "on"
    assert [text for text in trace.texts(CALL) if "work" in text]


@pytest.mark.parametrize(("word", "state"), [("on", "on"), ("YES", "on"), ("c", "on"), ("off", "off"), ("No", "off")])
def test_words_in_the_environment_mean_the_same_for_both(alone, tmp_path, word, state):
    shown = line(show(tmp_path, INFERSCOPE_CALLS=word), "calls").split()[1]
    trace = alone("output='t'", INFERSCOPE_CALLS=word)
    assert (shown, collectors(trace)["calls"]) == ({"on": "true", "off": "false"}[state] if word != "c" else "c", state)
    assert (of(trace, "calls"), of(trace, "c_calls")) == (state == "on", word == "c")


def test_what_start_is_given_wins_over_the_environment_and_that_over_the_file(alone, tmp_path):
    keys = ["calls", "rate_hz", "layers", "include", "memory_hz"]
    text = "calls: true\nrate_hz: 50\nlayers: true\ncalls_include: [a, b]\nmemory_hz: 5\n"
    (tmp_path / ".inferscope.yaml").write_text(text)
    trace = alone("'file'")
    assert [of(trace, key) for key in keys] == [True, 50, True, ["a", "b"], 5]
    environ = {
        "INFERSCOPE_RATE_HZ": "60",
        "INFERSCOPE_LAYERS": "off",
        "INFERSCOPE_CALLS_INCLUDE": "c",
        "INFERSCOPE_OUTPUT": "environment",
    }
    trace = alone(**environ)
    assert trace.folder == tmp_path / "environment"
    assert [of(trace, key) for key in keys] == [True, 60, False, ["c"], 5]
    # A no and an empty list are given, too.
    trace = alone("'call', calls=False, rate_hz=0, layers=True, include=[], memory_hz=0", **environ)
    assert trace.folder == tmp_path / "call"
    assert [of(trace, key) for key in keys] == [False, 0, True, [], 0]
    assert collectors(trace)["calls"] == "off"


@pytest.mark.parametrize(
    ("text", "options", "calls", "says"),
    [
        ("rate_hz: many\n", "", "0", ".inferscope.yaml:1: rate_hz: many: must be a whole number"),
        ("rate_hertz: 1\n", "", "0", "did you mean rate_hz?"),
        ("rate_hz: [1\n", "", "0", ".inferscope.yaml:"),
        ("enable: true\n", "", "0", ".inferscope.yaml:1: enable cannot be set in a file"),
        ("", "gpu_detail='everything'", "0", "--gpu-detail everything: must be off, kernel"),
        ("", "rate_hz=0, native=True", "0", "--no-stacks"),
        ("", "", "sometimes", "INFERSCOPE_CALLS=sometimes: must be true, false, or c"),
    ],
)
def test_what_makes_no_sense_is_one_warning_and_the_program_goes_on(script, text, options, calls, says):
    path = script(RECORDS_ITSELF.format(options=options))
    (path.parent / ".inferscope.yaml").write_text(text)
    environ = environment(INFERSCOPE_CALLS=calls)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=path.parent, env=environ)
    assert (done.returncode, done.stdout) == (0, "False\nNone\n"), done.stderr
    assert done.stderr.count("RuntimeWarning: inferscope: nothing is recorded: ") == 1
    assert says in done.stderr
    assert sorted(left.name for left in path.parent.iterdir()) == [".inferscope.yaml", "script.py"]


def test_a_program_that_only_imports_the_package_is_not_recorded_because_of_a_file(script, tmp_path):
    (tmp_path / ".inferscope.yaml").write_text("enable: true\n")
    refused = inferscope("config", "show", cwd=tmp_path)
    assert refused.returncode == 2
    assert b"INFERSCOPE_ENABLE=1" in refused.stderr
    path = script("import inferscope; print(inferscope.is_recording())")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path, env=environment())
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_start_takes_every_flag_that_chooses_what_is_recorded():
    import inferscope as package

    shown = inferscope("run", "--help").stdout.decode()
    flags = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", shown, re.MULTILINE))
    # How the command itself talks, and what is made of the trace later.
    flags -= {"help", "version", "quiet", "verbose", "color", "report", "rules"}
    same = {"rate": "rate_hz", "no-stacks": "rate_hz"}
    taken = set(inspect.signature(package.start).parameters)
    assert {same.get(flag, flag.replace("-", "_")) for flag in flags} == taken


def test_a_flag_takes_back_what_the_file_says(script, record, tmp_path):
    (tmp_path / ".inferscope.yaml").write_text("layers: true\ncalls: c\nnative: true\n")
    options = ("--layers=false", "--calls=false", "--native=false")
    ours = record(script("pass"), options=options, cwd=tmp_path)
    assert ours.code == 0, ours.told
    assert [ours.trace.manifest["settings"][key] for key in ("layers", "calls", "native")] == [False, False, False]


def test_a_program_under_run_knows_where_its_report_will_be(script, record, tmp_path):
    """Not where the environment says: a flag wins."""
    path = script("import inferscope; print(inferscope.report_path())")
    ours = record(path, env=environment(INFERSCOPE_OUTPUT="elsewhere"), cwd=tmp_path)
    assert ours.out.decode().strip() == str(ours.trace.folder / "report.md")
