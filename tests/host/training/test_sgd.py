"""One training step against the update rule, with TensorFlow's gradient of the plain loss."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.training.sgd import SgdTrainer


def test_two_steps_follow_the_rule() -> None:
    inputs = keras.Input((2, 2, 3))
    x = BatchRenorm(r_max=1.0, d_max=0.0, name="brn")(
        keras.layers.Conv2D(4, 1, use_bias=False)(inputs)
    )
    outputs = keras.layers.Dense(3, use_bias=False)(keras.layers.Flatten()(x))
    model = keras.Model(inputs, outputs)
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (5, 2, 2, 3), np.uint8)
    labels = np.array([0, 2, 1, 1, 0])
    trainer = SgdTrainer(model, momentum=0.9, weight_decay=0.01)

    weights = model.trainable_weights
    assert [weight.name.split("/")[-1] for weight in weights] == [
        "kernel:0",
        "gamma:0",
        "beta:0",
        "kernel:0",
    ]
    decays = [0.01, 0.0, 0.0, 0.01]
    velocities = [np.zeros(weight.shape) for weight in weights]
    for lr, lower_lr in ((0.1, 0.1), (0.05, 0.002)):
        before = [weight.numpy() for weight in weights]
        moments = [weight.numpy() for weight in model.non_trainable_weights]
        with tf.GradientTape() as tape:
            probabilities = tf.nn.softmax(model(frames / 127.5 - 1.0, training=True))
            loss = -tf.reduce_mean(tf.math.log(tf.gather(probabilities, labels, batch_dims=1)))
        gradients = [gradient.numpy() for gradient in tape.gradient(loss, weights)]
        for weight, moment in zip(model.non_trainable_weights, moments):
            weight.assign(moment)

        got, hits = trainer.step(frames, labels, lr=lr, lower_lr=lower_lr)
        assert got == np.float32(got)
        np.testing.assert_allclose(got, loss, rtol=1e-5)
        assert hits == int((probabilities.numpy().argmax(axis=1) == labels).sum())
        for i, decay in enumerate(decays):
            rate = lr if i == 3 else lower_lr  # the dense layer is the last
            velocities[i] = 0.9 * velocities[i] - rate * (gradients[i] + decay * before[i])
            np.testing.assert_allclose(weights[i], before[i] + velocities[i], atol=1e-6)


def test_accuracy_counts_every_frame_once() -> None:
    inputs = keras.Input((1, 1, 3))
    model = keras.Model(inputs, keras.layers.Flatten()(inputs))  # the brightest channel wins
    trainer = SgdTrainer(model, momentum=0.9, weight_decay=0.0)
    frames = np.eye(3, dtype=np.uint8).reshape(3, 1, 1, 3)[[0, 1, 2, 0, 1]] * np.uint8(200)
    labels = np.array([0, 1, 2, 0, 0])
    assert trainer.accuracy(frames, labels, batch_size=2) == 0.8
    assert np.isnan(trainer.accuracy(frames[:0], labels[:0], batch_size=2))


def test_latents_are_taken_as_they_are() -> None:
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2, use_bias=False)(inputs))
    kernel = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 0.25]], np.float32)
    model.set_weights([kernel])
    trainer = SgdTrainer(model, momentum=0.9, weight_decay=0.0, latents=True)
    latents = np.array([[0.1, 0.2, 0.3]], np.float32)
    loss, hits = trainer.step(latents, np.array([0]), lr=0.0, lower_lr=0.0)
    logits = latents @ kernel  # 0.2 and 0.375
    np.testing.assert_allclose(loss, np.log(1 + np.exp(logits[0, 1] - logits[0, 0])), rtol=1e-6)
    assert hits == 0
