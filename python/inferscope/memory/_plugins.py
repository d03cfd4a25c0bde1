"""Plugins: packages that are told of snapshots and leaks, and bring collectors or drawings of their own. A package
names its plugin in the entry-point group `inferscope.memory`; one that fails is counted and changes nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

GROUP = "inferscope.memory"


class Plugin:
    """What a plugin may have, all of it optional. A subclass is one way; any object with some of these will do."""

    def on_memory_snapshot(self, event: Any) -> None:
        """Called with each sample, in the tracker's thread."""

    def on_leak_detected(self, finding: Any) -> None:
        """Called with each leak that `MemoryAnalyzer` finds."""

    def collectors(self) -> Iterable[Any]:
        """Objects of `DeviceMemoryCollector`, which the tracker reads."""
        return ()

    def visualizations(self) -> Mapping[str, Callable[..., str]]:
        """Drawings by name: each takes events and returns SVG."""
        return {}


class Plugins:
    """Those that take part. Safe to use from several threads."""

    def __init__(self, plugins: Iterable[Any] = ()) -> None:
        self._plugins = [plugin() if isinstance(plugin, type) else plugin for plugin in plugins]
        self._lock = threading.Lock()
        self.errors = 0
        self.last_error: str | None = None

    @classmethod
    def installed(cls) -> Plugins:
        """All that installed packages name."""
        from importlib.metadata import entry_points

        found = cls()
        for entry in entry_points(group=GROUP):
            try:
                plugin = entry.load()
                found._plugins.append(plugin() if isinstance(plugin, type) else plugin)
            except Exception as error:
                found._failed(entry.name, error)
        return found

    def _failed(self, name: str, error: BaseException) -> None:
        with self._lock:
            self.errors += 1
            self.last_error = f"{name}: {type(error).__name__}: {error}"[:500]

    def _call(self, method: str, *arguments: Any) -> list[Any]:
        answers = []
        for plugin in self._plugins:
            function = getattr(plugin, method, None)
            if function is None:
                continue
            try:
                answers.append(function(*arguments))
            except BaseException as error:
                self._failed(type(plugin).__name__, error)
        return answers

    def on_memory_snapshot(self, event: Any) -> None:
        self._call("on_memory_snapshot", event)

    def on_leak_detected(self, finding: Any) -> None:
        self._call("on_leak_detected", finding)

    def collectors(self) -> list[Any]:
        return [collector for answer in self._call("collectors") for collector in answer]

    def visualizations(self) -> dict[str, Callable[..., str]]:
        found: dict[str, Callable[..., str]] = {}
        for answer in self._call("visualizations"):
            found.update(answer)
        return found
