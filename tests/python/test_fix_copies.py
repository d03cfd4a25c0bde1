"""The fix `pinned-copies` of `inferscope verify` on a stand-in for PyTorch: which copies go through pinned memory,
which are left as they are, and that a second stream ends it."""

import json

# As much of PyTorch as a copy to a GPU needs. Every real copy is noted: from where, and how it was asked for.
STAND_IN = """
import json, sys, types

class device:
    def __init__(self, name):
        self.type = name.partition(":")[0]

class TensorBase:
    def __init__(self, place="cpu", pinned=False, numel=8, contiguous=True, grad=False):
        self.device, self.pinned, self.count = device(place), pinned, numel
        self.contiguous, self.requires_grad, self.layout = contiguous, grad, "strided"
        self.is_cuda = self.device.type == "cuda"
    def to(self, *arguments, **options):
        copies.append(["to", self.pinned, repr(arguments), options])
        return self
    def cuda(self, *arguments, **options):
        copies.append(["cuda", self.pinned, repr(arguments), options])
        return self
    def copy_(self, source, *arguments, **options):
        copies.append(["copy_", source.pinned, repr(arguments), options])
        return self
    def pin_memory(self):
        if sys.argv[1:] == ["--no-pinning"]:
            raise RuntimeError("CUDA error: out of memory")
        return Tensor(pinned=True)
    def numel(self): return self.count
    def is_contiguous(self, memory_format=None): return self.contiguous
    def is_conj(self): return False
    def is_neg(self): return False
    def is_pinned(self): return self.pinned

class Tensor(TensorBase): pass
class Parameter(Tensor): pass

class StreamBase:
    def __new__(cls, *arguments, **options):
        return object.__new__(cls)
class Stream(StreamBase):
    def __new__(cls, device=None, priority=0, **options):
        return super().__new__(cls, priority=priority, **options)
    def __init__(self, *arguments, **options): pass

copies = []
torch = types.ModuleType("torch")
torch.Tensor, torch.device, torch.strided, torch.channels_last = Tensor, device, "strided", "channels_last"
torch.float16 = "float16"
torch.compiler = types.SimpleNamespace(is_compiling=lambda: False)
torch.backends = types.SimpleNamespace(cuda=types.SimpleNamespace(is_built=lambda: True))
torch.cuda = types.SimpleNamespace(Stream=Stream, synchronize=lambda: copies.append(["synchronize"]))
sys.modules["torch"] = torch
from inferscope._fixes.copies import switch
switch()
WAIT = {"non_blocking": True}
"""


def copies(record, program, *arguments):
    """What was copied, and the last word about the fix."""
    done = record(STAND_IN + program + "\nprint(json.dumps(copies))", *arguments)
    assert (done.code, done.err) == (0, "")
    (segment,) = (one for all_of in done.segments.values() for one in all_of)
    return json.loads(done.out), [moment.name for moment in segment.of("fix")]


def test_pageable_tensors_go_through_pinned_memory_without_a_wait(record):
    made, _ = copies(
        record,
        """
Tensor().to("cuda"), Tensor().to(device("cuda:1")), Tensor().to(0), Tensor().to(device="cuda", non_blocking=False)
Tensor().to(Tensor("cuda")), Tensor().cuda(), Tensor().cuda(1)
Tensor("cuda").copy_(Tensor())
""",
    )
    assert len(made) == 8
    assert all(pinned and options["non_blocking"] for _, pinned, _, options in made)


def test_what_says_itself_whether_to_wait_is_taken_at_its_word(record):
    made, _ = copies(
        record,
        """
Tensor().to("cuda", torch.float16, False), Tensor().to("cuda", torch.float16, False, True)
Tensor().to(Tensor("cuda"), True)
Tensor().cuda(0, False), Tensor("cuda").copy_(Tensor(), False)
""",
    )
    assert [(name, pinned) for name, pinned, *_ in made] == [
        ("to", True),
        ("to", True),
        ("to", True),
        ("cuda", False),
        ("copy_", False),
    ]
    assert all(options == {} for *_, options in made)


def test_everything_else_is_left_alone(record):
    made, _ = copies(
        record,
        """
Tensor(pinned=True).to("cuda")
Tensor().to("cpu"), Tensor().to(torch.float16), Tensor().to(Tensor()), Tensor().to(True)
Tensor("cuda").to("cuda"), Tensor("cuda").to("cpu")
Tensor(grad=True).to("cuda"), Tensor(numel=0).to("cuda"), Tensor(contiguous=False).to("cuda")
Parameter().to("cuda")
Tensor().copy_(Tensor()), Tensor().copy_(Tensor("cuda"))
""",
    )
    assert len(made) == 13
    assert all(options == {} for *_, options in made)


def test_a_second_stream_ends_it_after_the_copies_are_done(record):
    made, said = copies(
        record,
        """
Stream(stream_id=0, device_index=0, device_type=1)  # What torch.cuda.current_stream() makes.
Tensor().to("cuda")
assert type(Stream()) is Stream
Tensor().to("cuda")
Stream(priority=-1)
""",
    )
    assert [(one[0], *one[1:2]) for one in made] == [("to", True), ("synchronize",), ("to", False)]
    assert "a second stream" in said[-1]


def test_memory_that_cannot_be_pinned_is_copied_as_it_was(record):
    made, said = copies(record, 'Tensor().to("cuda"), Tensor().cuda()', "--no-pinning")
    assert made == [["to", False, "('cuda',)", {}], ["cuda", False, "()", {}]]
    assert "memory cannot be pinned: CUDA error: out of memory" in said[-1]
