"""transformers: `generate` with a small language model, random weights, and a processor of its scores that goes through
the vocabulary in Python. That is planted: a tensor of the banned tokens does the same at once."""

import torch
from marks import requests
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, LogitsProcessorList

torch.manual_seed(0)
torch.set_num_threads(1)
REQUESTS, TOKENS, VOCABULARY = 40, 10, 2000


class NoBannedTokens(LogitsProcessor):
    def __call__(self, tokens, scores):
        allowed = []
        for token, score in enumerate(scores[0].tolist()):
            banned = any(token % 7 == rest and token > 100 for rest in (3, 5))
            allowed.append(float("-inf") if banned else score)
        return torch.tensor([allowed])


config = LlamaConfig(
    vocab_size=VOCABULARY,
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
model = LlamaForCausalLM(config).eval()
prompts = torch.randint(0, VOCABULARY, (REQUESTS, 1, 16))
processors = LogitsProcessorList([NoBannedTokens()])
last = []
for prompt in requests(prompts):
    tokens = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=TOKENS,
        min_new_tokens=TOKENS,
        do_sample=False,
        pad_token_id=0,
        logits_processor=processors,
    )
    last.append(int(tokens[0, -1]))
print(len(last), sum(last))
