"""JAX: a jitted function that calls another one, and a method that is jitted; on the CPU."""

from functools import partial

import jax
import jax.numpy as jnp


@jax.jit
def layer(x, w):
    return jnp.tanh(x @ w)


@jax.jit
def forward(x, w):
    return layer(layer(x, w), w).sum()


@partial(jax.jit, static_argnames="power")
def raised(x, power):
    return (x**power).sum()


x, w = jnp.ones((4, 8)), jnp.full((8, 8), 0.1)
for _ in range(5):
    print(f"{float(forward(x, w)):.5f}")
for _ in range(3):
    print(f"{float(raised(x, power=2)):.5f}")
print(f"{float(jax.grad(forward)(x, w).sum()):.5f}", forward.__name__, type(forward).__name__)
