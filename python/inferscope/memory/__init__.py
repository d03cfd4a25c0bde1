"""Memory of this program, from inside: tracked over time, profiled by function, explained when it runs out.

    from inferscope.memory import MemoryTracker

    with MemoryTracker(output="telemetry") as tracker:
        with tracker.phase("load"):
            model = load()

Samples are taken by the native command, outside this process. What only a framework knows is read where the program has
imported that framework; none is imported for it.
"""

from ._analyzer import LeakFinding, MemoryAnalyzer, MemoryPattern
from ._bytes import convert_bytes, format_bytes
from ._collector import DeviceMemoryCapabilities, DeviceMemoryCollector, DeviceMemorySample
from ._decorators import (
    ProfiledLayer,
    ProfiledModule,
    clear_results,
    get_global_profiler,
    profile_context,
    profile_function,
    set_global_profiler,
)
from ._devices import available_collectors, build_device_memory_collector, detect_torch_runtime_backend, get_gpu_info
from ._errors import DeviceUnavailable, MemoryProfilingError, TrackingError
from ._event import (
    TelemetryEvent,
    TelemetryEventV2,
    load_telemetry_events,
    telemetry_event_from_record,
    telemetry_event_to_dict,
    validate_telemetry_record,
)
from ._flight_recorder import OOMFlightRecorder, OOMFlightRecorderConfig, flight_recorder
from ._gaps import GapFinding
from ._measure import MemorySnapshot, ProfileResult
from ._oom import OOMExceptionClassification, classify_oom_exception
from ._other_collectors import CPUCollector, JAXDeviceCollector, TensorFlowDeviceCollector
from ._phases import PhaseHandle
from ._plugins import Plugin, Plugins
from ._profilers import CPUMemoryProfiler, GPUMemoryProfiler, TFMemoryProfiler
from ._retainers import Retainer, Retainers, retainers
from ._torch_collectors import CUDADeviceCollector, MPSDeviceCollector, ROCmDeviceCollector
from ._tracker import MemoryTracker
from ._visualizer import MemoryVisualizer
from ._watchdog import MemoryWatchdog

__all__ = [
    "CPUCollector",
    "CPUMemoryProfiler",
    "CUDADeviceCollector",
    "DeviceMemoryCapabilities",
    "DeviceMemoryCollector",
    "DeviceMemorySample",
    "DeviceUnavailable",
    "GPUMemoryProfiler",
    "GapFinding",
    "JAXDeviceCollector",
    "LeakFinding",
    "MPSDeviceCollector",
    "MemoryAnalyzer",
    "MemoryPattern",
    "MemoryProfilingError",
    "MemorySnapshot",
    "MemoryTracker",
    "MemoryVisualizer",
    "MemoryWatchdog",
    "OOMExceptionClassification",
    "OOMFlightRecorder",
    "OOMFlightRecorderConfig",
    "PhaseHandle",
    "Plugin",
    "Plugins",
    "ProfileResult",
    "ProfiledLayer",
    "ProfiledModule",
    "ROCmDeviceCollector",
    "Retainer",
    "Retainers",
    "TFMemoryProfiler",
    "TelemetryEvent",
    "TelemetryEventV2",
    "TensorFlowDeviceCollector",
    "TrackingError",
    "available_collectors",
    "build_device_memory_collector",
    "classify_oom_exception",
    "clear_results",
    "convert_bytes",
    "detect_torch_runtime_backend",
    "flight_recorder",
    "format_bytes",
    "get_global_profiler",
    "get_gpu_info",
    "load_telemetry_events",
    "profile_context",
    "profile_function",
    "retainers",
    "set_global_profiler",
    "telemetry_event_from_record",
    "telemetry_event_to_dict",
    "validate_telemetry_record",
]
