"""torchvision: images from a DataLoader through a small ResNet; as it is, compiled, in threads, and where it fails."""

import threading

import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
model = torchvision.models.resnet18(num_classes=4).eval()
images = TensorDataset(torch.rand(12, 3, 32, 32))
with torch.inference_mode():
    for (batch,) in DataLoader(images, batch_size=2):
        print(model(batch).argmax(dim=1).tolist())


class Fails(torch.nn.Module):
    def forward(self, _batch):
        raise ValueError("no such batch")


for _ in range(2):
    try:
        Fails()(None)
    except ValueError as error:
        print(error, error.__traceback__.tb_next.tb_frame.f_code.co_name)

small = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
compiled = torch.compile(small, backend="eager")
for _ in range(3):
    print(tuple(compiled(torch.ones(1, 4)).shape))


def serve():
    for _ in range(5):
        model.fc(torch.ones(1, 512))


threads = [threading.Thread(target=serve) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

module = torch.nn.Module
print(module.__call__ is module._wrapped_call_impl is vars(module)["__call__"])
