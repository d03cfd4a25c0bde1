"""Keras on TensorFlow: a small model, by `predict`, called as a function, and compiled by `tf.function`."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
layers = [keras.layers.Input((8,)), keras.layers.Dense(16, "relu", name="hidden"), keras.layers.Dense(2, name="scores")]
model = keras.Sequential(layers)
samples = np.random.default_rng(0).normal(size=(12, 8)).astype("float32")
for _ in range(3):
    print(f"{model.predict(samples, batch_size=4, verbose=0).sum():.4f}")
for _ in range(4):
    print(f"{float(np.asarray(model(samples)).sum()):.4f}")
compiled = tf.function(lambda rows: tf.reduce_sum(tf.matmul(rows, rows, transpose_b=True)))
for _ in range(2):
    print(f"{float(compiled(tf.constant(samples))):.4f}")
