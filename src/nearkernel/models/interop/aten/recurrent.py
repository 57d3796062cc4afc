"""Recurrent networks of several layers, as loops over time."""

import jax
import jax.numpy as jnp

from .table import operation


def _layers(x, params, has_biases, num_layers, bidirectional, batch_first, run):
    """`run(sequence, weights, index)` of each layer and direction, over (time, batch, features)."""
    x = jnp.swapaxes(x, 0, 1) if batch_first else x
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    ends = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            weights = params[index * each : (index + 1) * each]
            sequence = jnp.flip(x, 0) if direction else x
            z, end = run(sequence, weights, index)
            outputs.append(jnp.flip(z, 0) if direction else z)
            ends.append(end)
        x = jnp.concatenate(outputs, axis=-1)
    return (jnp.swapaxes(x, 0, 1) if batch_first else x), ends


def _biases(weights, has_biases):
    return weights[2:4] if has_biases else (0.0, 0.0)


@operation("gru.input")
def gru(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    def run(sequence, weights, index):
        into, over = weights[:2]
        into_bias, over_bias = _biases(weights, has_biases)

        def step(h, fed):
            a = jnp.split(fed, 3, axis=-1)
            b = jnp.split(h @ over.T + over_bias, 3, axis=-1)
            reset, update = jax.nn.sigmoid(a[0] + b[0]), jax.nn.sigmoid(a[1] + b[1])
            new = jnp.tanh(a[2] + reset * b[2])
            h = new + update * (h - new)
            return h, h

        end, z = jax.lax.scan(step, hx[index], sequence @ into.T + into_bias)
        return z, end

    z, ends = _layers(x, params, has_biases, num_layers, bidirectional, batch_first, run)
    return z, jnp.stack(ends)


@operation("lstm.input")
def lstm(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    def run(sequence, weights, index):
        into, over = weights[:2]
        into_bias, over_bias = _biases(weights, has_biases)
        projected = len(weights) in (3, 5)

        def step(state, fed):
            h, c = state
            i, f, g, o = jnp.split(fed + h @ over.T + over_bias, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            h = h @ weights[-1].T if projected else h
            return (h, c), h

        end, z = jax.lax.scan(step, (hx[0][index], hx[1][index]), sequence @ into.T + into_bias)
        return z, end

    z, ends = _layers(x, params, has_biases, num_layers, bidirectional, batch_first, run)
    return z, jnp.stack([h for h, _ in ends]), jnp.stack([c for _, c in ends])


def _plain(function):
    def network(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        def run(sequence, weights, index):
            into, over = weights[:2]
            into_bias, over_bias = _biases(weights, has_biases)

            def step(h, fed):
                h = function(fed + h @ over.T + over_bias)
                return h, h

            end, z = jax.lax.scan(step, hx[index], sequence @ into.T + into_bias)
            return z, end

        z, ends = _layers(x, params, has_biases, num_layers, bidirectional, batch_first, run)
        return z, jnp.stack(ends)

    return network


operation("rnn_tanh.input")(_plain(jnp.tanh))
operation("rnn_relu.input", kinked=True)(_plain(lambda x: jnp.where(x > 0, x, 0)))
