"""NVTX's C functions for the tests' programs, from the library that NVIDIA ships with CUDA: what the `nvtx` package
does not call, and calls that no package would make."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_uint16, c_uint32, c_uint64, c_void_p, c_wchar_p
from importlib.metadata import files

ASCII, UNICODE, REGISTERED = 1, 2, 3


class Attributes(ctypes.Structure):
    """nvtxEventAttributes_t."""

    _fields_ = [
        ("version", c_uint16),
        ("size", c_uint16),
        ("category", c_uint32),
        ("color_type", c_int32),
        ("color", c_uint32),
        ("payload_type", c_int32),
        ("reserved", c_int32),
        ("payload", c_uint64),
        ("message_type", c_int32),
        ("message", c_void_p),
    ]


SIGNATURES: dict[str, tuple[type | None, list[type]]] = {
    "nvtxMarkA": (None, [c_char_p]),
    "nvtxMarkW": (None, [c_wchar_p]),
    "nvtxMarkEx": (None, [c_void_p]),
    "nvtxRangeStartA": (c_uint64, [c_char_p]),
    "nvtxRangeStartW": (c_uint64, [c_wchar_p]),
    "nvtxRangeStartEx": (c_uint64, [c_void_p]),
    "nvtxRangeEnd": (None, [c_uint64]),
    "nvtxRangePushA": (c_int, [c_char_p]),
    "nvtxRangePushW": (c_int, [c_wchar_p]),
    "nvtxRangePushEx": (c_int, [c_void_p]),
    "nvtxRangePop": (c_int, []),
    "nvtxNameCategoryA": (None, [c_uint32, c_char_p]),
    "nvtxNameCategoryW": (None, [c_uint32, c_wchar_p]),
    "nvtxDomainMarkEx": (None, [c_void_p, c_void_p]),
    "nvtxDomainRangeStartEx": (c_uint64, [c_void_p, c_void_p]),
    "nvtxDomainRangeEnd": (None, [c_void_p, c_uint64]),
    "nvtxDomainRangePushEx": (c_int, [c_void_p, c_void_p]),
    "nvtxDomainRangePop": (c_int, [c_void_p]),
    "nvtxDomainNameCategoryA": (None, [c_void_p, c_uint32, c_char_p]),
    "nvtxDomainNameCategoryW": (None, [c_void_p, c_uint32, c_wchar_p]),
    "nvtxDomainRegisterStringA": (c_void_p, [c_void_p, c_char_p]),
    "nvtxDomainRegisterStringW": (c_void_p, [c_void_p, c_wchar_p]),
    "nvtxDomainCreateA": (c_void_p, [c_char_p]),
    "nvtxDomainCreateW": (c_void_p, [c_wchar_p]),
    "nvtxDomainDestroy": (None, [c_void_p]),
    "nvtxNameOsThreadA": (None, [c_uint32, c_char_p]),
    "nvtxInitialize": (None, [c_void_p]),
}


def load() -> ctypes.CDLL:
    found = [file for file in files("nvidia-nvtx") or [] if file.name.startswith("libnvtx3interop.so")]
    assert found, "the package nvidia-nvtx has no libnvtx3interop.so: install tests/frameworks/requirements.txt"
    library = ctypes.CDLL(str(found[0].locate()))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def attributes(
    message_type: int = 0, message: object = None, category: int = 0, size: int = 48
) -> ctypes.Array[Attributes]:
    """Attributes with a message: bytes, a str for a wide one, or a handle. An array of one: ctypes passes a pointer
    to it, and it keeps its text alive."""
    one = (Attributes * 1)()
    one[0].version, one[0].size, one[0].category, one[0].message_type = 3, size, category, message_type
    if isinstance(message, bytes):
        one.text = ctypes.create_string_buffer(message)
    elif isinstance(message, str):
        one.text = ctypes.create_unicode_buffer(message)
    elif isinstance(message, int):
        one[0].message = message
    if isinstance(message, (bytes, str)):
        one[0].message = ctypes.addressof(one.text)
    return one
