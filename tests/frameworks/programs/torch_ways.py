"""PyTorch: the other ways a module is called, traced, copied and looked at. All that a program can tell is printed."""

import copy
import inspect
import pickle
import traceback

import torch
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Calls(Net):
    """With a way of its own to be called."""

    def __call__(self, *args, **options):
        return super().__call__(*args, **options)


def show(what, result):
    print(what, [round(float(number), 4) for number in result.flatten()])


net, x = Net().eval(), torch.ones(3, 4)
with torch.no_grad():
    show("plain", net(x))
    show("keyword", net(x=x))
    show("by name", net.__call__(x))
    show("override", Calls()(x))
    show("scripted", torch.jit.script(net)(x))
    show("traced", torch.jit.trace(net, (x,))(x))
    show("symbolic", torch.fx.symbolic_trace(net)(x))
    show("exported", torch.export.export(net, (x,)).module()(x))
    show("functional", torch.func.functional_call(net, dict(net.named_parameters()), (x,)))
    show("vmap", torch.func.vmap(net)(x))
    show("parallel", torch.nn.DataParallel(net)(x))
    show("copied", copy.deepcopy(net)(x))
    show("pickled", pickle.loads(pickle.dumps(net))(x))
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    show("compiled", compiled(x))
    show("compiled again", compiled(x))
net(x).sum().backward()
show("gradient", net.first.bias.grad)
handle = net.register_forward_hook(lambda module, args, output: output * 2)
show("hooked", net(x).detach())
handle.remove()
with profile(activities=[ProfilerActivity.CPU]) as prof:
    net(x)
print("profiled", sum(event.count for event in prof.key_averages() if event.key == "aten::linear"))
try:
    net(x, x)
except TypeError:
    print([line.strip() for line in traceback.format_exc().splitlines() if "line" in line or "Error" in line])
print(inspect.signature(torch.nn.Module.__call__), inspect.signature(net), type(vars(torch.nn.Module)["__call__"]))
print(torch._dynamo.utils.counters["stats"]["unique_graphs"], len(torch._dynamo.utils.counters["graph_break"]))
