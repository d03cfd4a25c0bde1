"""One program with one of everything (`workloads/tour.py`), and each part of it against what the program knows."""

from __future__ import annotations

import sys

from case import Case, equal


def tour(case: Case) -> None:
    done = case.record("tour", case.python("tour.py"))

    def ran() -> None:
        equal(done.code, 0, f"exit ({done.err[-500:]})")

    case.check("tour: the program ends as without us", ran)
    if case.dry or done.code:
        return
    trace, known = case.trace("tour"), done.known
    case.results.figure("tour_bytes_per_gpu_event", trace.bytes_per_event, "bytes, all tables")

    def loop() -> None:
        equal(len(trace.asked_in("loop", "kernel")), known["loop_kernels"], "kernels of a loop of known length")
        equal(trace.losses, [], "losses")

    def copies() -> None:
        for scope, source, target in (
            ("pageable", "pageable", "device"),
            ("pinned", "pinned", "device"),
            ("back", "device", "pinned"),
            ("across", "device", "device"),
        ):
            found = trace.asked_in(scope, "gpu_memcpy")
            equal(len(found), known["copies"], f"copies, {source} to {target}")
            equal({one.args["bytes"] for one in found}, {known["copy_bytes"]}, f"bytes of a copy, {source} to {target}")
        kinds = {row["kind"]: row["count"] for row in trace.work["copies"]}
        for word in ("pageable", "pinned"):
            assert any(word in kind for kind in kinds), f"no kind of copy says {word}: {kinds}"

    def streams() -> None:
        found = trace.asked_in("streams", "kernel")
        equal(len(found), known["streams_kernels"], "kernels on three streams")
        equal(len({one.args["stream"] for one in found}), known["streams"], "streams")

    def graph() -> None:
        found = trace.asked_in("graph", "kernel")
        equal(len(found), known["graph_replays"] * known["graph_nodes"], "kernels of the replayed graph")
        nodes = {one.args.get("graph node id") for one in found}
        equal(len(nodes - {None}), known["graph_nodes"], "different nodes")
        launches = [one for one in trace.calls if "GraphLaunch" in one.name]
        assert len(launches) >= known["graph_replays"], f"{len(launches)} graph launches"

    def memory() -> None:
        equal(len(trace.asked_in("memory", "gpu_memset")), known["memsets"], "memsets")
        for word, count in (("MallocAsync", known["pool_allocations"]), ("FreeAsync", known["pool_allocations"])):
            found = [one for one in trace.calls if word in one.name]
            assert len(found) >= count, f"{len(found)} calls of {word}, expected {count}"
        assert list(trace.folder.glob("allocations.*.parquet")), "no table of allocations"

    def nvtx() -> None:
        found = [one for one in trace.of("nvtx") if one.name in ("outer 0", "outer 1", "inner", "a mark")]
        equal(len(found), known["nvtx_ranges"] + known["nvtx_marks"], f"NVTX ranges and marks ({trace.notes})")

    def waits() -> None:
        scopes = [one for one in trace.slices if one.name == "waits" and one.category == "scope"]
        for word in ("DeviceSynchronize", "StreamSynchronize", "EventSynchronize"):
            found = [one for one in trace.calls if word in one.name and scopes[0].start <= one.start <= scopes[0].end]
            equal(len(found), known["waits_each"], word)

    def clock() -> None:
        judged = trace.work["clock"]
        equal(judged["violations"], 0, "work that starts before its call")
        assert judged["linked"] > 1000, f"only {judged['linked']} pieces of work have a call"

    for check in (loop, copies, streams, graph, memory, nvtx, waits, clock):
        case.check(f"tour: {check.__name__}", check)


def decode(case: Case) -> None:
    """A transformer in eager mode and as a graph: results, counts and layers."""
    words = case.python("decode.py")
    plain = case.run(words)
    done = case.record("decode", words, "--layers")

    def same() -> None:
        equal(done.code, 0, f"exit ({done.err[-500:]})")
        equal(done.known["digest"], plain.known["digest"], "digest of the results")

    case.check("decode: the results are the same", same)
    if case.dry or done.code:
        return
    trace, known = case.trace("decode"), done.known

    def counts() -> None:
        replayed = trace.asked_in("replayed token", "kernel")
        equal(len(replayed), known["graph_steps"] * known["graph_kernels"], "kernels of the replayed steps")
        eager = trace.asked_in("token", "kernel")
        # In eager mode a step also chooses the token: one reduction.
        spare = len(eager) - known["eager_steps"] * known["graph_kernels"]
        equal(spare % known["eager_steps"], 0, "kernels of the eager steps beyond those of the graph")
        assert 0 < spare <= 3 * known["eager_steps"], f"{spare} more kernels in {known['eager_steps']} steps"
        equal(trace.losses, [], "losses")

    def layers() -> None:
        rows = {row["name"]: row for row in trace.work["layers"]}
        for number in range(known["layers"]):
            for part in ("attention.qkv", "attention.out", "norm1", "mlp.0", "mlp.2"):
                assert f"layers.{number}.{part}" in rows, f"no kernel of layers.{number}.{part}: {sorted(rows)[:40]}"
        ways = {way: sum(row[way] for row in rows.values()) for way in ("direct", "by_sequence", "by_capture")}
        kernels = len(trace.kernels)
        case.results.figure("decode_layers_named", {**ways, "kernels": kernels})
        assert ways["direct"] and ways["by_sequence"] and ways["by_capture"], f"a way that named nothing: {ways}"

    case.check("decode: kernels are as many as the graph holds", counts)
    case.check("decode: layers", layers)


def fixtures(case: Case) -> None:
    """Small traces for the repository."""
    for name in ("decode", "bert", "copies", "graphs"):
        options = ("--layers",) if name in ("decode", "graphs") else ()
        done = case.record(f"small-{name}", [sys.executable, "small.py", name], *options)

        def kept(name: str = name, done: object = done) -> None:
            equal(done.code, 0, f"exit ({done.err[-500:]})")
            case.keep(f"small-{name}")

        case.check(f"fixture: {name}", kept)
