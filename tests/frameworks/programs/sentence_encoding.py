"""Encoding as sentence-transformers does it: a tokenizer, a small BERT, mean pooling over the words, unit length.
Planted: the text is cleaned in Python, letter by letter, before it is tokenised."""

import os
import unicodedata

# Its threads wait for each other where others use the cores.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch
from marks import requests
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

torch.manual_seed(0)
torch.set_num_threads(1)
BATCHES, SENTENCES, WORDS = 40, 64, 24


def cleaned(text):
    kept = []
    for letter in unicodedata.normalize("NFD", text):
        if unicodedata.category(letter) != "Mn":
            kept.append(letter.lower() if letter.isalnum() else " ")
    return " ".join("".join(kept).split())


words = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *(f"word{n}" for n in range(200))])}
plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]")
config = BertConfig(
    vocab_size=len(words), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128
)
model = BertModel(config, add_pooling_layer=False).eval()
# Text as it comes from pages and tables: more of it is lines and dots than words.
document = " ".join(f"Wörd{number},{'.' * 90} | {'-' * 90}" for number in range(WORDS))
total = 0.0
with torch.inference_mode():
    for number in requests(range(BATCHES)):
        texts = [cleaned(document + " word7" * ((number + place) % 5)) for place in range(SENTENCES)]
        batch = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
        hidden = model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
        total += float(torch.nn.functional.normalize(pooled, dim=1).abs().sum())
print(f"{total:.2f}")
