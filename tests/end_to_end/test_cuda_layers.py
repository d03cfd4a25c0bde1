"""`--layers` on the GPU that tests/fake_cupti plays, with a stand-in for PyTorch: the kernels of every model of a
program have their layers, also where an overhead budget lets the GPU be recorded in windows only, and what has none
is said."""

from __future__ import annotations

import json

from fake_gpu import OnGpu
from recording import REPOSITORY, inferscope

TORCH = REPOSITORY / "tests" / "python" / "stand_in_torch"
# Every leaf launches kernels of its own; `requests` are steps for so many seconds.
MODELS = """
    import sys, time
    import torch
    from inferscope import step

    class Leaf(torch.nn.Module):
        def forward(self, name):
            do("\\n".join(f"kernel {name}{self.number}{part} us=20" for part in "xyz"))
            return name

    class Model(torch.nn.Module):
        def forward(self, name):
            return self.b(self.a(name))

    def leaf(number):
        one = Leaf()
        one.number = number
        return one

    class Target(Model):
        pass

    model, target = Model(a=leaf(1), b=leaf(2)), Target(a=leaf(3), b=leaf(4))
    assert driver.cuInit(0) == 0

    def requests():
        end = time.monotonic() + float(sys.argv[1])
        return step(iter(lambda: time.monotonic() < end, False), name="request")
"""
WITHOUT = """
    for _ in requests():
        do("repeat 4\\nkernel k us=20\\nend\\nsync stream")
        time.sleep(0.002)
"""


def play(gpu, text: str, seconds: int, *options: str) -> OnGpu:
    program = gpu.python(MODELS + text)
    seen: OnGpu = gpu.play("", command=(program, seconds), options=("--layers", *options), PYTHONPATH=str(TORCH))
    assert seen.recorded.code == 0, seen.recorded.told
    return seen


def analysed(seen: OnGpu):
    """The kernels of each layer, and what the health of the recording says about layers."""
    done = inferscope("analyze", seen.trace.folder, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    (line,) = [line for line in said["health"]["lines"] if line["label"] == "layers"]
    return {row["name"]: row["kernels"] for row in said["gpu_work"]["layers"]}, line


def test_the_kernels_in_the_windows_of_a_budget_have_their_layers(gpu):
    seen = play(
        gpu,
        """
    for _ in requests():
        model("k")
        do("sync stream")
        time.sleep(0.002)
        """,
        7,
        "--overhead-budget",
        "2%",
    )
    assert "in " in seen.notes() and "windows" in seen.notes()
    kernels = seen.kernels()
    assert kernels, "something was recorded"
    layers, line = analysed(seen)
    assert set(layers) == {"a", "b"}
    # A window may open and close in the middle of a call.
    assert sum(layers.values()) > 0.8 * sum(kernels.values()), (layers, kernels, line)
    assert line["state"] in ("ok", "info")


def test_a_draft_model_and_its_target_have_their_layers(gpu):
    seen = play(
        gpu,
        """
    for _ in requests():
        for _ in range(5):
            model("draft")
        target("target")
        do("sync stream")
        time.sleep(0.002)
        """,
        3,
        "--overhead-budget",
        "none",
    )
    layers, line = analysed(seen)
    kernels = seen.kernels()
    assert layers["Target.a"] == sum(kernels[f"target3{part}"] for part in "xyz") > 0
    assert layers["a"] == sum(kernels[f"draft1{part}"] for part in "xyz") > 0
    assert (line["state"], line["text"]) == ("ok", f"{sum(kernels.values()):,} kernels, all with a layer")


def test_kernels_without_a_layer_are_counted_and_said_to_be(gpu):
    layers, line = analysed(play(gpu, WITHOUT, 1))
    assert layers == {}
    assert line["state"] == "warn"
    assert "none with a layer: no module call was recorded" in line["text"]
