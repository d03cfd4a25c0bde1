"""Keras on JAX: a small model, by `predict` and called as a function."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
samples = np.random.default_rng(0).normal(size=(12, 8)).astype("float32")
for _ in range(3):
    print(f"{model.predict(samples, batch_size=4, verbose=0).sum():.4f}")
for _ in range(4):
    print(f"{float(np.asarray(model(samples)).sum()):.4f}")
