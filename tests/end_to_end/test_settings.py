"""Settings from flags, environment and .inferscope.yaml: who wins, what is refused, and with which sentence."""

import pytest
from recording import environment, inferscope


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
