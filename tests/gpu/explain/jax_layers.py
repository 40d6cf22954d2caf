"""JAX: a few compiled layers; preallocation as XLA_PYTHON_CLIENT_PREALLOCATE says."""
import jax
import jax.numpy as jnp

from marks import mark

w = [jax.random.normal(jax.random.PRNGKey(i), (1024, 1024), dtype=jnp.bfloat16) for i in range(12)]
jax.block_until_ready(w)
mark("weights")


@jax.jit
def forward(x, w):
    for m in w:
        x = jax.nn.gelu(x @ m) * 0.05
    return x


x = jnp.ones((64, 1024), dtype=jnp.bfloat16)
for _ in range(20):
    x = forward(x, w)
print(x.shape, bool(jnp.isfinite(x.astype(jnp.float32)).all()))
mark("end")
