"""PyTorch: a small model in a loop, and nothing else."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).requires_grad_(False)
total = 0.0
for number in range(200):
    total += float(model(torch.full((2, 16), number / 200)).sum())
print(f"{total:.4f}")
