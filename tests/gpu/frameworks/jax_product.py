"""JAX: one compiled product. With its defaults it preallocates most of the card in one VMM handle."""
import jax
import jax.numpy as jnp

x = jnp.ones((512, 512))
f = jax.jit(lambda a: (a @ a).sum())
print(float(f(x)))
print(jax.devices())
