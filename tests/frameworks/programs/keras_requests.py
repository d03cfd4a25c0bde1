"""Keras on JAX: a small model asked by `predict`, a batch a request. Planted: its features are hashed in Python, one by
one."""

import os
import zlib

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from marks import requests

keras.utils.set_random_seed(0)
REQUESTS, ROWS, FEATURES = 40, 128, 64


def hashed(number):
    rows = np.zeros((ROWS, FEATURES), np.float32)
    for row in range(ROWS):
        for name in range(400):
            value = f"{name}={(number * 31 + row * 17 + name) % 97}"
            rows[row, zlib.crc32(value.encode()) % FEATURES] += 1.0
    return rows


model = keras.Sequential([keras.layers.Input((FEATURES,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(2)])
total = 0.0
for number in requests(range(REQUESTS)):
    total += float(model.predict(hashed(number), batch_size=ROWS, verbose=0).sum())
print(f"{total:.2f}")
