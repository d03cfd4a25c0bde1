"""The `nvtx` package and torch.cuda.nvtx under `inferscope run`, without a GPU: ranges and marks arrive as slices with
their threads, domains and categories."""

import json

from nvtx_ranges import ranges


def test_the_package(tmp_path):
    seen = ranges(
        tmp_path,
        """
        import nvtx, threading

        @nvtx.annotate("decorated", category="maths")
        def decorated():
            with nvtx.annotate("within"):
                pass

        @nvtx.annotate()
        def by_its_own_name(): pass

        nvtx.push_range("outer")
        nvtx.push_range("middle", domain="loader", category="disk")
        nvtx.push_range("inner")
        nvtx.pop_range()
        nvtx.pop_range(domain="loader")
        decorated()
        nvtx.pop_range()
        by_its_own_name()
        nvtx.mark("moment", domain="loader")
        nvtx.mark("größe ≤ 3 \\U0001f600 東京")
        domain = nvtx.get_domain("prepared")
        attributes = domain.get_event_attributes(message="again and again", category="loop", payload=7)
        for _ in range(1000):
            domain.push_range(attributes)
            domain.pop_range()
        """,
    )
    assert seen.inside("inner", "outer") and seen.inside("within", "decorated") and seen.inside("decorated", "outer")
    assert seen.args("outer") == {}
    assert seen.args("middle") == {"domain": "loader", "category": "disk"}
    assert seen.args("decorated") == {"category": "maths"}
    assert seen.args("moment") == {"domain": "loader"}
    assert seen.one("moment")["dur_ns"] == 0
    assert seen.names["größe ≤ 3 \U0001f600 東京"] == seen.names["by_its_own_name"] == 1
    again = {row["args"] for row in seen.rows if row["text"] == "again and again"}
    assert (seen.names["again and again"], len(again)) == (1000, 1)
    assert json.loads(again.pop()) == {"domain": "prepared", "category": "loop"}
    (process,) = seen.trace.manifest["processes"]
    (collector,) = [line for line in process["collectors"] if line["name"] == "nvtx"]
    assert collector["state"] == "on"
    assert seen.losses() == {} and seen.trace.lost() == 0


def test_a_range_ends_in_another_thread_and_belongs_to_the_first(tmp_path):
    seen = ranges(
        tmp_path,
        """
        import json, nvtx, threading
        ids, began = [], []

        def begin():
            ids.append(nvtx.start_range("across", domain="pool"))
            ids.append(nvtx.start_range("overlapping"))
            began.append(threading.get_native_id())

        for work in (begin, lambda: nvtx.end_range(ids[0]), lambda: nvtx.end_range(ids[1])):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        print(json.dumps(began))
        """,
    )
    (thread,) = seen.said()
    assert seen.one("across")["thread"] == seen.one("overlapping")["thread"] == thread
    assert seen.args("across") == {"domain": "pool"}
    assert seen.one("across")["dur_ns"] > 0 and seen.losses() == {}


def test_ranges_end_when_an_exception_passes(tmp_path):
    seen = ranges(
        tmp_path,
        """
        import nvtx

        @nvtx.annotate("raises")
        def raises():
            raise ValueError

        for _ in range(10):
            try:
                with nvtx.annotate("around"):
                    raises()
            except ValueError:
                pass
        with nvtx.annotate("the last"):
            sys.exit(7)
        """,
        code=7,
    )
    assert (seen.names["raises"], seen.names["around"], seen.names["the last"]) == (10, 10, 1)


def test_thousands_of_threads(tmp_path):
    seen = ranges(
        tmp_path,
        """
        import nvtx, threading

        def work(number):
            with nvtx.annotate("thread", domain=f"d{number % 7}"):
                nvtx.end_range(nvtx.start_range(f"worker {number}"))

        for first in range(0, 3000, 50):
            threads = [threading.Thread(target=work, args=(number,)) for number in range(first, first + 50)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        """,
    )
    assert seen.names["thread"] == 3000
    assert [seen.names[f"worker {number}"] for number in range(3000)] == [1] * 3000
    assert {json.loads(row["args"])["domain"] for row in seen.rows if row["args"]} == {f"d{n}" for n in range(7)}
    assert seen.trace.lost() == 0


def test_more_threads_at_once_than_there_are_rings(tmp_path):
    seen = ranges(
        tmp_path,
        """
        import nvtx, threading
        threading.stack_size(256 << 10)
        count = 1300
        everybody = threading.Barrier(count)

        def work():
            with nvtx.annotate("at once"):
                everybody.wait()

        threads = [threading.Thread(target=work) for _ in range(count)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """,
    )
    # What found no ring is counted.
    assert seen.names["at once"] >= 900
    assert seen.names["at once"] + sum(seen.losses().values()) == 1300


def test_a_forked_child_has_ranges_of_its_own(tmp_path):
    seen = ranges(
        tmp_path,
        """
        import json, os, nvtx
        nvtx.push_range("open across the fork")
        with nvtx.annotate("before", domain="shared", category="kept"):
            pass
        handed = nvtx.start_range("started in the parent")
        child = os.fork()
        if child == 0:
            nvtx.pop_range()
            nvtx.end_range(handed)
            with nvtx.annotate("in the child", domain="shared", category="kept"):
                nvtx.mark("before")
            if os.fork() == 0:
                nvtx.mark("in the grandchild")
                os._exit(0)
            os.wait()
            os._exit(0)
        os.waitpid(child, 0)
        nvtx.end_range(handed)
        nvtx.pop_range()
        print(json.dumps(child))
        """,
    )
    processes = {process["pid"]: number for number, process in enumerate(seen.trace.manifest["processes"])}
    child = processes[seen.said()]
    assert seen.one("in the child")["process"] == child
    assert seen.args("in the child") == {"domain": "shared", "category": "kept"}
    assert seen.one("in the grandchild")["process"] not in (0, child)
    # The parent's own are the parent's alone, and once.
    assert seen.one("open across the fork")["process"] == seen.one("started in the parent")["process"] == 0
    assert seen.names["before"] == 2
    assert seen.losses() == {}


def test_a_killed_program_keeps_what_had_ended(tmp_path):
    seen = ranges(
        tmp_path,
        """
        import os, signal, nvtx
        nvtx.push_range("never ends")
        for _ in range(500):
            with nvtx.annotate("ends"):
                pass
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        code=-9,
    )
    assert seen.names == {"ends": 500}


def test_what_a_thread_leaves_open_is_counted(tmp_path):
    seen = ranges(
        tmp_path,
        """
        import nvtx, threading
        nvtx.push_range("open")
        thread = threading.Thread(target=lambda: nvtx.push_range("open in a thread", domain="other"))
        thread.start()
        thread.join()
        nvtx.mark("marked")
        """,
    )
    assert seen.names == {"marked": 1}
    assert list(seen.losses().values()) == [2]


def test_torch(tmp_path):
    seen = ranges(
        tmp_path,
        """
        import json, torch
        nvtx = torch.cuda.nvtx
        levels = [nvtx.range_push("forward"), nvtx.range_push("layer 0"), nvtx.range_pop(), nvtx.range_pop()]
        with nvtx.range("batch {}", 3):
            nvtx.mark("token")
        nvtx.range_end(nvtx.range_start("request"))
        print(json.dumps(levels))
        """,
    )
    assert seen.said() == [0, 1, 1, 0]
    assert seen.names == {"forward": 1, "layer 0": 1, "batch 3": 1, "token": 1, "request": 1}
    assert seen.inside("layer 0", "forward") and seen.losses() == {}
