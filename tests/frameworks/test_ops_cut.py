"""A look that has cost too much ends early, and the program does not notice, wherever it is in its inference mode just
then."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))

from recording import inferscope

# Steps begin outside the inference mode, calls inside it: a look begins at the one, and is cut before the other.
PROGRAM = """
import torch
from inferscope import step
from inferscope._ops import look

look._MOST_COST_S = 0.0
model = torch.nn.Linear(4, 4).eval()

@torch.inference_mode()
def request():
    return model(torch.tensor([[1.0] * 4])).sum()

for _ in step(range(400), name="request"):
    total = request() + torch.tensor([1.0])
print("fine")
"""


def test_a_look_that_is_cut_inside_an_inference_mode_harms_nothing(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = inferscope("run", "--quiet", "--output", tmp_path / "trace", "--", sys.executable, script)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, [b"fine"]), done.stderr.decode()
