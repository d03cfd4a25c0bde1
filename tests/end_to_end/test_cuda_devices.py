"""Which devices a program used: an instance of MIG is told from the device that it is a part of."""

import pytest
from fake_gpu import VERSIONS

WORK = "kernel k us=5\nsync device"


def devices(seen):
    assert seen.recorded.code == 0, seen.recorded.told
    return [device["uuid"] for device in seen.trace.manifest["processes"][0]["devices"]]


@pytest.mark.parametrize("cuda", VERSIONS)
def test_an_instance_has_its_own_id(gpu, cuda):
    assert devices(gpu.play(f"mig\n{WORK}", cuda)) == ["MIG-f0e1d2c3-b4a5-9687-7869-5a4b3c2d1e0f"]


def test_a_whole_device_has_the_devices(gpu):
    assert devices(gpu.play(WORK)) == ["GPU-00102030-4050-6070-8090-a0b0c0d0e0f0"]
