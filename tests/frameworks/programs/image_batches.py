"""torchvision: JPEG images, decoded and resized by a DataLoader without workers, through a small ResNet. The missing
workers are planted."""

import io

import torch
import torchvision
from marks import requests
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

torch.manual_seed(0)
torch.set_num_threads(1)
IMAGES, BATCH = 160, 4


class Photographs(Dataset):
    def __init__(self, count):
        # Noise is what JPEG is slowest with, as with a photograph of leaves.
        pixels = torch.randint(0, 256, (480, 640, 3), dtype=torch.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels.numpy()).save(file, "JPEG", quality=90)
        self.file, self.count = file.getvalue(), count
        self.prepare = v2.Compose([v2.Resize(64), v2.CenterCrop(64), v2.PILToTensor(), v2.ToDtype(torch.float32, True)])

    def __len__(self):
        return self.count

    def __getitem__(self, _place):
        return self.prepare(Image.open(io.BytesIO(self.file)).convert("RGB"))


model = torchvision.models.resnet18(num_classes=10).eval()
batches = iter(DataLoader(Photographs(IMAGES), batch_size=BATCH))
total = 0
with torch.inference_mode():
    for _ in requests(range(IMAGES // BATCH)):
        total += int(model(next(batches)).argmax(dim=1).sum())
print(total)
