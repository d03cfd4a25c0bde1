"""The Perfetto export, read with Perfetto's own protos as its trace processor reads it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

TIMELINES = ["everything", "hostile", "nothing", "gpu"]
MILLISECOND = 1_000_000


def read(exports: Path, name: str) -> Any:
    trace = protos.Trace()
    trace.ParseFromString((exports / f"{name}.perfetto-trace").read_bytes())
    return trace


def unknown_fields(message: Message) -> int:
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            count += sum(map(unknown_fields, [value] if isinstance(value, Message) else value))
    return count


class Reader:
    """Takes packets in order, as the trace processor does: what an event refers to must have come before it."""

    def __init__(self, trace: Any) -> None:
        self.clock = 0
        self.tracks: dict[int, Any] = {}
        self.names: dict[int, str] = {}
        self.categories: dict[int, str] = {}
        self.locations: set[int] = set()
        self.annotations: set[int] = set()
        self.open: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        self.last: defaultdict[int, int] = defaultdict(int)
        # Track, name, begin and end in milliseconds, depth.
        self.slices: list[tuple[str, str, float, float, int]] = []
        self.instants: list[tuple[str, str]] = []
        self.counters: list[tuple[str, int]] = []
        # Time, whether it ends there, number, and where: track and name.
        self.ends: list[tuple[int, bool, int, tuple[str, str]]] = []
        for packet in trace.packet:
            self.take(packet)
        assert not any(self.open.values()), "every slice is closed"
        # By number, where each arrow begins and ends; by time, whichever track was written first.
        self.flows: dict[int, tuple[str, str]] = {}
        self.arrows: list[tuple[tuple[str, str], tuple[str, str]]] = []
        for _, ends, flow, place in sorted(self.ends, key=lambda end: end[:2]):
            if ends:
                self.arrows.append((self.flows.pop(flow), place))
            else:
                self.flows[flow] = place

    def take(self, packet: Any) -> None:
        if packet.sequence_flags & protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            assert not self.names, "state is cleared once, at the start"
            self.clock = packet.trace_packet_defaults.timestamp_clock_id
        data = packet.interned_data
        self.names |= {one.iid: one.name for one in data.event_names}
        self.categories |= {one.iid: one.name for one in data.event_categories}
        self.locations |= {one.iid for one in data.source_locations}
        self.annotations |= {one.iid for one in data.debug_annotation_names}
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid and track.uuid not in self.tracks, "a track is described once"
            assert not track.parent_uuid or track.parent_uuid in self.tracks, "after its parent"
            self.tracks[track.uuid] = track
        if packet.HasField("track_event"):
            assert packet.sequence_flags & protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
            self.event(packet.timestamp, packet.track_event)

    def label(self, uuid: int) -> str:
        track = self.tracks[uuid]
        if track.HasField("thread"):
            return f"{track.thread.pid}/{track.thread.tid}"
        parent = f"{self.label(track.parent_uuid)} > " if track.parent_uuid else ""
        return parent + (str(track.process.pid) if track.HasField("process") else track.name)

    def event(self, time: int, event: Any) -> None:
        uuid = event.track_uuid
        assert uuid in self.tracks, "a track is described before its events"
        assert time >= self.last[uuid], "time runs forward on a track"
        self.last[uuid] = time
        assert set(event.category_iids) <= self.categories.keys()
        assert not event.source_location_iid or event.source_location_iid in self.locations
        assert all(one.name or one.name_iid in self.annotations for one in event.debug_annotations)
        name = event.name or (self.names[event.name_iid] if event.name_iid else "")
        place = (self.label(uuid), name)
        self.ends += [(time, False, flow, place) for flow in event.flow_ids]
        self.ends += [(time, True, flow, place) for flow in event.terminating_flow_ids]
        if event.type == event.TYPE_SLICE_BEGIN:
            self.open[uuid].append((name, time))
        elif event.type == event.TYPE_SLICE_END:
            name, start = self.open[uuid].pop()
            depth = len(self.open[uuid])
            self.slices.append((self.label(uuid), name, start / MILLISECOND, time / MILLISECOND, depth))
        elif event.type == event.TYPE_INSTANT:
            self.instants.append((self.label(uuid), name))
        else:
            assert event.type == event.TYPE_COUNTER and self.tracks[uuid].HasField("counter")
            self.counters.append((self.label(uuid), event.counter_value))


@pytest.mark.parametrize("name", TIMELINES)
def test_the_official_protos_know_every_field(exports: Path, name: str) -> None:
    trace = read(exports, name)
    assert len(trace.packet) > 2
    assert unknown_fields(trace) == 0


@pytest.mark.parametrize("name", TIMELINES)
def test_whatever_an_event_refers_to_came_before_it(exports: Path, name: str) -> None:
    reader = Reader(read(exports, name))
    assert reader.clock == protos.BUILTIN_CLOCK_MONOTONIC
    assert any("InferScope" in track for track, _ in reader.instants)


def test_slices_samples_and_counters_are_those_of_the_timeline(exports: Path) -> None:
    reader = Reader(read(exports, "everything"))
    start = 5000
    slices = {(track, name): (begin - start, end - start, depth) for track, name, begin, end, depth in reader.slices}
    assert slices["100/100", "request"] == (0, 90, 0)
    assert slices["100/100", "matmul"] == (30, 40, 3)
    assert slices["100/101 > overlapping scopes", "inner_b"] == (22, 28, 1)
    assert slices["100/100 > sampled stacks (at 100 Hz)", "forward"] == (10, 40, 1)
    assert slices["100/100 > sampled state (at 100 Hz)", "waiting"] == (40, 50, 0)
    assert ("100/100", "cache_miss") in reader.instants
    assert ("100 > rss_bytes", 8192) in reader.counters


def test_devices_have_tracks_and_arrows_from_the_calls(exports: Path) -> None:
    reader = Reader(read(exports, "gpu"))
    streams = {track for track, *_ in reader.slices if "GPU" in track}
    assert streams == {f"1000 > GPU 0 · NVIDIA H200 > stream {stream}" for stream in (7, 13)}
    assert not reader.flows, "every arrow arrives"
    ends = {(call[1], work[1]) for call, work in reader.arrows}
    assert {("cudaGraphLaunch", "node_a"), ("cudaGraphLaunch", "node_b"), ("cuLaunchKernelEx", "softmax<T>")} <= ends
    assert all(call[0] == "1000/1000" for call, _ in reader.arrows)
    waited = [work[1] for call, work in reader.arrows if call[1] == "cudaStreamSynchronize"]
    assert waited.count("Memcpy d2h") == 4, "a wait leads to what it waited for"
    assert ("GPU 0: gpu_utilisation_percent", 80) in reader.counters


def test_units_and_types_have_the_meaning_of_the_protos(exports: Path) -> None:
    trace = read(exports, "everything")
    tracks = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
    units = {track.name: track.counter.unit for track in tracks if track.HasField("counter")}
    descriptor = protos.CounterDescriptor
    assert units["rss_bytes"] == descriptor.UNIT_SIZE_BYTES
    assert units["psi_cpu_some_us"] == units["runqueue_wait_ns"] == descriptor.UNIT_TIME_NS
    snapshot = trace.packet[0].clock_snapshot
    assert snapshot.primary_trace_clock == protos.BUILTIN_CLOCK_MONOTONIC
    assert {clock.clock_id for clock in snapshot.clocks} == {
        protos.BUILTIN_CLOCK_MONOTONIC,
        protos.BUILTIN_CLOCK_REALTIME,
    }
    threads = [track for track in tracks if track.HasField("thread")]
    assert {track.child_ordering for track in threads} == {protos.TrackDescriptor.EXPLICIT}
