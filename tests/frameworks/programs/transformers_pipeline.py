"""transformers: a text classification pipeline around a tiny model with random weights and a few words."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, TextClassificationPipeline

torch.manual_seed(0)
torch.set_num_threads(1)
words = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "a", "good", "bad", "film"])}
plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]")
config = BertConfig(
    vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
)
classify = TextClassificationPipeline(model=BertForSequenceClassification(config).eval(), tokenizer=tokenizer)
for text in ("a good film", "a bad film", "a film"):
    (answer,) = classify(text)
    print(answer["label"], f"{answer['score']:.4f}")
