"""The soak in short: some hundred random kills, each record accounted for. `make soak` does ten thousand."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "soak"))

from soak import soak

# Kills at moments that a busy machine would move.
pytestmark = pytest.mark.serial

KILLS = 200
# For a machine that hangs, not for one that is slow.
MINUTES = 30


def test_some_hundred_random_kills_lose_nothing_that_is_not_counted(tmp_path):
    tally = soak(KILLS, MINUTES, seed=11, folder=tmp_path, tell=False)
    assert not tally.faults, "\n".join([*tally.faults, tally.table()])
    assert sum(tally.kills.values()) >= KILLS, tally.table()
