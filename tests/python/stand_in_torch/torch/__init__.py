"""As much of PyTorch as InferScope looks at, so that this is tested on every Python; with the real one it is tested in
tests/frameworks."""

from . import cuda, nn

__all__ = ["cuda", "nn"]
