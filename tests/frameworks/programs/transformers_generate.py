"""transformers: a tiny language model with random weights generates, called by itself, and behind a pipeline."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
torch.set_num_threads(1)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
model = LlamaForCausalLM(config).eval()
prompt = torch.arange(8).reshape(1, 8)
mask = torch.ones_like(prompt)

for _ in range(3):
    tokens = model.generate(prompt, attention_mask=mask, max_new_tokens=6, do_sample=False, pad_token_id=0)
    print(tokens.tolist())
options = {"attention_mask": mask, "max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
for _ in range(2):
    print(model.generate(prompt, **options).tolist())
with torch.no_grad():
    for _ in range(4):
        print(f"{float(model(prompt).logits.sum()):.4f}")
