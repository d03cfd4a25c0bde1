"""transformers: continuous batching of prompts of different lengths with a small language model and random weights. A
thread of transformers calls the model, once for each round of tokens of all requests that run then. Nothing is
planted; marked is what the program itself waits for, a batch of prompts."""

import torch
from marks import requests
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.generation.configuration_utils import ContinuousBatchingConfig

torch.manual_seed(0)
torch.set_num_threads(1)
BATCHES, PROMPTS, TOKENS = 8, 6, 40
config = LlamaConfig(
    vocab_size=500,
    hidden_size=192,
    intermediate_size=768,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
)
model = LlamaForCausalLM(config).eval()
# No token ends an answer.
answers = GenerationConfig(max_new_tokens=TOKENS, do_sample=False, eos_token_id=-1, pad_token_id=0)
# Left to itself it takes nine tenths of the machine's memory for its cache.
bounded = ContinuousBatchingConfig(num_blocks=16, page_size=32, max_batch_tokens=64, use_async_batching=False)
total = 0
with model.continuous_batching_context_manager(answers, continuous_batching_config=bounded, warmup=False) as manager:
    for _ in requests(range(BATCHES)):
        asked = [torch.randint(0, 500, (8 + 2 * number,)).tolist() for number in range(PROMPTS)]
        waiting = set(manager.add_requests(asked, max_new_tokens=TOKENS))
        while waiting:
            done = manager.get_result(timeout=30)
            if done is not None and done.is_finished():
                waiting.discard(done.request_id)
                total += len(done.generated_tokens)
print(total)
