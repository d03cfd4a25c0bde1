"""The pytest fixture `inferscope_check`: what a block of a test does on the GPU is held against limits. Nothing of
InferScope is loaded before a test asks for it; what it does is in `inferscope._check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from inferscope._check import Checks


@pytest.fixture
def inferscope_check(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    """Records a block and fails the test when a limit is passed or undecided, as `inferscope check` does.

    def test_decode(inferscope_check):
        with inferscope_check(max_kernels=400, max_implicit_syncs=0, min_gpu_busy="60%"):
            decode(batch)
    """
    from inferscope._check import Checks

    return Checks(tmp_path_factory.mktemp("inferscope"))
