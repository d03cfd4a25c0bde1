"""The pytest fixture `inferscope_check` in a real pytest: what passes, what fails and in which words, and that nothing
passes that was not measured."""

import subprocess
import sys
from textwrap import dedent

import pytest
from fake_gpu import PRELUDE
from recording import PATIENCE_S, environment, inferscope


@pytest.fixture
def run_tests(tmp_path):
    """Runs a file of tests as a user does: in a pytest of its own, with the installed plugin."""

    def run(text, *options, before=(), **variables):
        (tmp_path / "test_it.py").write_text(dedent(text), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", *options]
        env = variables.pop("env", None) or environment(**variables)
        return subprocess.run(
            [*map(str, before), *command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE_S
        )

    return run


def counts(done):
    return done.stdout.strip().splitlines()[-1].strip("= ").rpartition(" in ")[0]


@pytest.mark.every_python
def test_time_is_measured_without_a_gpu_and_a_limit_of_the_gpu_never_passes(run_tests):
    done = run_tests("""
        def test_fast(inferscope_check):
            with inferscope_check(max_step_ms=100_000):
                sum(range(1000))

        def test_twice_in_one_test(inferscope_check):
            for _ in range(2):
                with inferscope_check(max_step_ms=100_000):
                    sum(range(1000))

        def test_host_limits(inferscope_check):
            with inferscope_check(max_p99_ms=100_000, max_rss_mib=100_000):
                sum(range(1000))

        def test_slow(inferscope_check):
            with inferscope_check(max_step_ms=0):
                sum(range(1000))

        def test_much_memory(inferscope_check):
            with inferscope_check(max_rss_mib=0.001):
                sum(range(1000))

        def test_gpu(inferscope_check):
            with inferscope_check(max_kernels=10, max_step_ms=100_000):
                sum(range(1000))

        def test_of_inner_steps(inferscope_check):
            from inferscope import step
            with inferscope_check(max_step_ms=100_000, step="decode"):
                for _ in step(range(5), name="decode"):
                    pass

        def test_of_steps_that_are_not_there(inferscope_check):
            with inferscope_check(max_step_ms=100_000, step="prefill"):
                pass
    """)
    assert counts(done) == "4 failed, 4 passed", done.stdout
    assert "limit exceeded: FAILED --max-step-ms 0" in done.stdout
    assert "limit exceeded: FAILED --max-rss-mib" in done.stdout
    assert "not measured: --max-kernels 10: no data (" in done.stdout
    assert 'not measured: no step or scope is called "prefill"' in done.stdout
    assert "look at it: inferscope analyze " in done.stdout
    assert "_check.py" not in done.stdout, "the error points to the test's own line"


def test_kernels_copies_and_waits_of_the_block_alone_are_counted(gpu, run_tests):
    text = dedent(PRELUDE) + dedent("""
        assert driver.cuInit(0) == 0
        ITEM = "memcpy kind=DtoH bytes=4 to=pageable via=cudaMemcpyAsync\\nsync stream"

        def test_within(inferscope_check):
            do("repeat 50\\nkernel outside us=5\\nend\\nsync device")
            with inferscope_check(max_kernels=20, max_implicit_syncs=0):
                do("repeat 20\\nkernel inside us=5\\nend\\nsync device")
            do("repeat 50\\nkernel outside us=5\\nend\\nsync device")

        def test_one_too_many(inferscope_check):
            with inferscope_check(max_kernels=20):
                do("repeat 21\\nkernel inside us=5\\nend\\nsync device")

        def test_item(inferscope_check):
            with inferscope_check(max_implicit_syncs=0, max_kernels=5):
                do("kernel k us=5\\n" + ITEM)

        def test_mean_of_steps(inferscope_check):
            from inferscope import step
            with inferscope_check(max_kernels=3, step="decode"):
                for _ in step(range(5), name="decode"):
                    do("repeat 3\\nkernel k us=5\\nend\\nsync device")

        def test_idle(inferscope_check):
            with inferscope_check(min_gpu_busy="90%"):
                do("kernel k us=5\\nhost us=5000\\nsync device")
    """)
    env = gpu.environment("", gpu.libraries.cupti("13.0"))
    done = run_tests(text, env=env)
    assert counts(done) == "3 failed, 2 passed", done.stdout + done.stderr
    assert "limit exceeded: FAILED --max-kernels 20: kernels is 21" in done.stdout
    assert "limit exceeded: FAILED --max-implicit-syncs 0: implicit_syncs is 1" in done.stdout
    assert "limit exceeded: FAILED --min-gpu-busy 90" in done.stdout


def test_what_the_block_raises_is_what_the_test_shows(run_tests):
    done = run_tests("""
        import inferscope
        import pytest

        def test_error(inferscope_check):
            with pytest.raises(KeyError, match="planted"):
                with inferscope_check(max_kernels=1):
                    raise KeyError("planted")
            assert not inferscope.is_recording()

        def test_no_limit(inferscope_check):
            with pytest.raises(TypeError, match="nothing to check: name a limit"):
                inferscope_check()

        def test_senseless_limit(inferscope_check):
            with pytest.raises(ValueError, match="must be from 0% to 100%"):
                with inferscope_check(min_gpu_busy=60):
                    pass

        def test_inside_another(inferscope_check):
            with inferscope_check(max_step_ms=100_000):
                with pytest.raises(AssertionError, match="not measured: this process is already being recorded"):
                    with inferscope_check(max_step_ms=100_000):
                        pass
    """)
    assert counts(done) == "4 passed", done.stdout


def test_what_cannot_be_recorded_fails_and_says_why(run_tests, tmp_path):
    text = """
        def test_it(inferscope_check):
            with inferscope_check(max_step_ms=100_000):
                pass
    """
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho the recorder is broken >&2\nexit 1\n")
    broken.chmod(0o755)
    done = run_tests(text, INFERSCOPE_BIN=str(broken))
    assert counts(done) == "1 failed", done.stdout
    assert "not measured" in done.stdout and "the recorder is broken" in done.stdout
    # A recorder is there already: what it records is not the block alone.
    trace = tmp_path / "outer"
    done = inferscope("run", "--output", trace, "--", sys.executable, "-m", "pytest", "-q", tmp_path / "test_it.py")
    assert b"not measured: this process is already being recorded" in done.stdout


def test_other_tests_do_not_load_the_package(run_tests):
    done = run_tests("""
        import sys

        def test_it(request):
            assert request.config.pluginmanager.hasplugin("inferscope")
            assert "inferscope" not in sys.modules
    """)
    assert counts(done) == "1 passed", done.stdout
