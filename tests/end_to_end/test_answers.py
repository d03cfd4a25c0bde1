"""What is said of small programs whose truth is known: where they wait, which process does the work, what each process
is, and that a program which ended at once tells nothing."""

import json
import re
import signal

import pytest
from recording import analyze, inferscope

pytestmark = pytest.mark.every_python


def diagnosis(trace):
    done = inferscope("analyze", trace.folder, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_a_function_that_waits_in_two_places_is_told_apart(script, record):
    path = script("""
        import time
        from inferscope import step
        def handle():
            time.sleep(0.030)
            time.sleep(0.010)
        for _ in step(range(60), name="request"):
            handle()
    """)
    ours = record(path)
    assert ours.code == 0, ours.told
    said = diagnosis(ours.trace)
    waits = [found for found in said["findings"] if found["code"] == "waits-in-step"]
    places = [re.search(r"in handle \(script\.py:(\d+)\)", found["title"]) for found in waits]
    assert [place and place.group(1) for place in places] == ["5", "6"], waits
    gains = [found["gain_percent"]["mid"] for found in waits]
    assert gains[0] > 2 * gains[1] > 0, "each line has its own gain, and three quarters of the waiting is at the first"
    assert sum(gains) <= 100, gains
    assert "Next: " in said["answer"][1], said["answer"]
    assert "(script.py:6)" in said["answer"][1], said["answer"]


def test_the_busiest_thread_of_a_preforking_server_is_a_worker(script, record):
    """Its master runs for longer than any worker, while it starts, and then waits."""
    ours = record(
        script("""
            import os, select, socket, time

            def work(seconds):
                end = time.process_time() + seconds
                while time.process_time() < end: sum(range(200))

            def handle(connection):
                work(0.0015)
                connection.sendall(b"done")

            def serve(listener):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        if connection.recv(1) == b"q": os._exit(0)
                        handle(connection)

            def ask(address):
                for _ in range(150):
                    with socket.create_connection(address) as connection:
                        connection.sendall(b"?")
                        connection.recv(4)
                    time.sleep(0.02)
                for _ in range(2):
                    with socket.create_connection(address) as connection:
                        connection.sendall(b"q")
                        connection.recv(1)
                os._exit(0)

            def fork(does, *arguments):
                child = os.fork()
                if child == 0: does(*arguments)
                return child

            def wait_for(children):
                while children:
                    select.select([], [], [], 0.1)
                    children = [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]

            work(0.25)
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            workers = [fork(serve, listener) for _ in range(2)]
            print(os.getpid(), *workers, flush=True)
            wait_for([*workers, fork(ask, listener.getsockname())])
        """)
    )
    assert ours.code == 0, ours.told
    master, *workers = ours.out.decode().split()
    first = diagnosis(ours.trace)["answer"][0]
    thread = re.search(r"of the busiest thread after start-up \(\S+ of (.*), pid (\d+)\)", first)
    assert thread, first
    assert thread.group(1).endswith("script.py"), first
    assert thread.group(2) in workers, (first, master, workers)


@pytest.mark.parametrize(("method", "more"), [("spawn", "resource tracker"), ("forkserver", "fork server")])
def test_workers_are_named_by_their_program(script, record, method, more):
    path = script(f"""
        import multiprocessing, sys
        def work(number): return number * 2
        if __name__ == "__main__":
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                print(pool.map(work, range(8)))
                # One worker may do it all: the other is not to be ended before it has begun.
                pool.close()
                pool.join()
    """)
    ours = record(path, "--token", "secret-argument")
    assert ours.code == 0, ours.told
    table = analyze(ours.trace).split("\nProcesses")[1].split("\n\n")[0]
    assert len(re.findall(r"script\.py: worker ", table)) == 2, table
    assert f"script.py: {more} " in table, table
    assert not re.search(r" -c\b|multiprocessing|secret", table), table


def test_a_module_is_named_and_code_is_not(script, record, tmp_path):
    script("import sys\nprint(sys.argv[1])", name="package/module.py")
    script("", name="package/__init__.py")
    ours = record("python", "-um", "package.module", "secret", cwd=tmp_path)
    assert (ours.code, ours.out) == (0, b"secret\n"), ours.told
    assert ours.trace.manifest["command"] == "python -m package.module"
    assert [process["program"] for process in ours.trace.manifest["processes"]] == ["python -m package.module"]


def test_code_of_a_command_line_is_in_no_name(record):
    ours = record("python", "-uc", "token = 'secret'; print(1)")
    assert (ours.code, ours.out) == (0, b"1\n"), ours.told
    assert ours.trace.manifest["command"] == "python -c"
    assert "secret" not in json.dumps(ours.trace.manifest)


# At one sample a second, twenty of them take longer than any of these lives.
SELDOM = ("--rate", "1")


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("raise RuntimeError('no model')", "The program failed: exit code 1."),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", f"killed by signal {signal.SIGKILL.value}."),
        ("pass", "The program exited normally (exit code 0)."),
    ],
)
def test_a_program_that_ends_at_once_is_too_short_to_tell(script, record, ends, said):
    ours = record(script(ends), options=SELDOM)
    first, second, third = diagnosis(ours.trace)["answer"]
    assert "too short for a breakdown: " in first, first
    assert said in second, second
    assert "Not enough data to identify a cause" in second, second
    assert "ecord a longer run" in third, third
    assert ("Check what the program printed" in third) == (ends != "pass"), third
    findings = diagnosis(ours.trace)["findings"]
    assert [found for found in findings if found["gain_percent"]] == [], findings
    assert re.search(r"samples: too short: .*, \d+ samples?", ours.trace.report), ours.trace.report
    assert "too short for a breakdown" in ours.told, ours.told
