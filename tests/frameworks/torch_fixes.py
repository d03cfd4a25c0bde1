"""The workload of test_verify.py: small models on the CPU whose settings say the opposite of each fix. Prints the
settings as they are in the middle of a step, then results that no setting may change by more than rounding."""

import torch
from inferscope import step
from torch.nn.attention import SDPBackend, sdpa_kernel


def against_the_fixes() -> None:
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.set_num_threads(2)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 16, 3)
        self.second = torch.nn.Conv2d(16, 16, 3)
        self.last = torch.nn.Linear(16, 8)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = self.second(self.first(images).relu()).mean((2, 3))
        with sdpa_kernel(SDPBackend.MATH):
            query = self.last(hidden)[None, None]
            self.backends = (torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.mem_efficient_sdp_enabled())
            return torch.nn.functional.scaled_dot_product_attention(query, query, query)


def main() -> None:
    torch.manual_seed(0)
    against_the_fixes()
    model = Model().eval()
    with torch.inference_mode():
        for number in step(range(4), name="request"):
            images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(number))
            result = model(images)
            # A copy that stays in the host's memory, in each of the ways in which one is asked for.
            copy = images.to("cpu").to(torch.float64).to(torch.zeros(1), non_blocking=True)
            copy.copy_(images)
    print("precision", torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32)
    print("cudnn", torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32)
    print("attention", *model.backends)
    print("channels_last", model.second.weight.is_contiguous(memory_format=torch.channels_last))
    print("hooks", len(torch.nn.modules.module._global_forward_pre_hooks))
    print("threads", torch.get_num_threads())
    print("result", *(f"{number:.3f}" for number in result.flatten()[:8].tolist()), torch.equal(copy, images))


if __name__ == "__main__":
    main()
