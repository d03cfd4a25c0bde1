"""JAX: a jitted model that is called with another length each time, so that it is compiled for each. That is planted:
padded to a few lengths it would be compiled a few times."""

import jax
import jax.numpy as jnp
import numpy as np
from marks import requests

REQUESTS, WIDTH = 14, 64
random = np.random.default_rng(0)
weights = [jnp.asarray(random.normal(size=(WIDTH, WIDTH)) / 8, jnp.float32) for _ in range(3)]


@jax.jit
def encode(x):
    for weight in weights:
        x = jax.nn.gelu(jax.nn.softmax(x @ x.T) @ x @ weight)
    return x.mean(axis=0)


total = 0.0
for number in requests(range(REQUESTS)):
    x = np.ones((16 + number, WIDTH), np.float32)
    total += float(np.abs(np.asarray(encode(x))).sum())
print(f"{total:.3f}")
