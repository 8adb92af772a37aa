"""Networks of JAX: name → a function of nothing that gives a function of arrays, and the shape of
its argument without the batch. Modules are those of Flax (nnx) and Equinox."""

import equinox
import jax
import jax.numpy as jnp
from flax import nnx


def chain(*parts):
    def run(x):
        for part in parts:
            x = part(x)
        return x
    return run


def flat(x):
    return x.reshape(x.shape[0], -1)


def rngs():
    return nnx.Rngs(0)


def perceptron():
    return chain(nnx.Linear(30, 20, rngs=rngs()),
                 nnx.BatchNorm(20, use_running_average=True, rngs=rngs()), nnx.gelu,
                 nnx.Dropout(0.1, deterministic=True, rngs=rngs()), nnx.Linear(20, 10, rngs=rngs()),
                 jax.nn.log_softmax)


def convolutions():
    return chain(nnx.Conv(3, 8, (3, 3), rngs=rngs()), nnx.relu,
                 lambda x: nnx.avg_pool(x, window_shape=(2, 2), strides=(2, 2)),
                 nnx.Conv(8, 16, (3, 3), strides=2, rngs=rngs()),
                 nnx.GroupNorm(16, num_groups=4, rngs=rngs()), nnx.silu, flat,
                 nnx.Linear(16 * 8 * 8, 10, rngs=rngs()))


def separable():
    return chain(nnx.Conv(8, 8, (3, 3), feature_group_count=8, rngs=rngs()), jax.nn.hard_swish,
                 nnx.Conv(8, 16, (1, 1), rngs=rngs()), lambda x: jnp.clip(x, 0, 6),
                 lambda x: nnx.max_pool(x, window_shape=(3, 3), strides=(2, 2), padding="SAME"),
                 nnx.ConvTranspose(16, 4, (3, 3), strides=(2, 2), rngs=rngs()), jnp.tanh)


def transformer():
    attention = nnx.MultiHeadAttention(4, 32, 32, 32, decode=False, dropout_rate=0.0, rngs=rngs())
    first, second = nnx.LayerNorm(32, rngs=rngs()), nnx.RMSNorm(32, rngs=rngs())
    inner, outer = nnx.Linear(32, 64, rngs=rngs()), nnx.Linear(64, 32, rngs=rngs())

    def run(x):
        x = x + attention(first(x), deterministic=True)
        return (x + outer(nnx.gelu(inner(second(x))))).mean(axis=1)
    return run


def equinox_network():
    first, second = jax.random.split(jax.random.PRNGKey(0))
    network = equinox.nn.Sequential([
        equinox.nn.Conv2d(1, 4, 3, key=first), equinox.nn.Lambda(jax.nn.relu),
        equinox.nn.MaxPool2d(2, 2), equinox.nn.Lambda(jnp.ravel),
        equinox.nn.Linear(4 * 13 * 13, 10, key=second)])
    return jax.vmap(network)


def recurrent():
    """A cell by hand: Flax's own keep a generator that tracing does not allow."""
    keys = jax.random.split(jax.random.PRNGKey(1), 3)
    w, u = (0.3 * jax.random.normal(key, (8, 8)) for key in keys[:2])
    v = jax.random.normal(keys[2], (8, 3))

    def run(x):
        def step(carry, now):
            carry = jnp.tanh(now @ w + carry @ u)
            return carry, carry
        last, every = jax.lax.scan(step, jnp.zeros((x.shape[0], 8)), jnp.swapaxes(x, 0, 1))
        return (last + every.mean(axis=0)) @ v
    return run


def repeated():
    return lambda x: jax.lax.fori_loop(0, 5, lambda i, v: 0.5 * v + jnp.sin(v) * i, x)


def chosen():
    return lambda x: jax.lax.cond(x.sum() > 0, lambda v: 2 * v, lambda v: v - 1, x)


def sorted_rows():
    return lambda x: jnp.concatenate(
        [jnp.sort(x, axis=1)[:, ::-1], jnp.cumsum(x, axis=1), jnp.roll(x, 2, axis=1),
         jnp.where(x > 0, x, jnp.expm1(x)), jax.nn.one_hot(jnp.argmax(x, axis=1), 8),
         jnp.take(x, jnp.array([3, 1, 0, 2, 7, 7, 4, 5]), axis=1)], axis=1)


def similarities():
    return lambda x: jnp.einsum("bij,bkj->bik", x, x) / jnp.linalg.norm(x, axis=2, keepdims=True)


NETWORKS = {
    "perceptron": (perceptron, [30]),
    "convolutions": (convolutions, [32, 32, 3]),
    "separable": (separable, [16, 16, 8]),
    "transformer": (transformer, [16, 32]),
    "equinox": (equinox_network, [1, 28, 28]),
    "recurrent": (recurrent, [12, 8]),
    "repeated": (repeated, [8]),
    "chosen": (chosen, [8]),
    "sorted_rows": (sorted_rows, [8]),
    "similarities": (similarities, [6, 8]),
}
