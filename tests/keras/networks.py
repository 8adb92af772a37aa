"""Networks as people write them with Keras: its applications at the resolutions of devices, and
small networks of one kind of layer each, untrained. name -> function that gives a model."""

import keras
from keras import layers as kl

APPLICATIONS = {
    "MobileNet": {"alpha": 0.25}, "MobileNetV2": {"alpha": 0.35}, "MobileNetV3Small": {},
    "EfficientNetB0": {}, "EfficientNetV2B0": {}, "DenseNet121": {}, "NASNetMobile": {},
    "ResNet50V2": {}, "ConvNeXtTiny": {},
}


def application(name, options):
    size = 224 if name == "NASNetMobile" else 96
    return lambda: getattr(keras.applications, name)(
        input_shape=(size, size, 3), weights=None, classes=10, **options)


def stack(shape, *layers, dtype=None):
    """Of layers by functions, so that none is made before its turn."""
    return lambda: keras.Sequential([keras.Input(shape, dtype=dtype), *(make() for make in layers)])


def layer(shape, cls, *args, dtype=None, **options):
    return stack(shape, lambda: cls(*args, **options), dtype=dtype)


def behind(shape, cls, *args, **options):
    """A layer without weights, behind one that has some."""
    return stack(shape, lambda: kl.Dense(shape[-1]), lambda: cls(*args, **options))


IMAGE, VOLUME, SERIES = (17, 15, 6), (9, 8, 7, 4), (20, 6)


def join(cls, **options):
    """A layer of several inputs between two branches."""
    def make():
        x = keras.Input((12, 8))
        a, b = kl.Dense(8, activation="tanh")(x), kl.Dense(8, activation="relu")(x)
        return keras.Model(x, cls(**options)([a, b]))
    return make


def attention(cls, **options):
    def make():
        x = keras.Input((12, 32))
        y = kl.LayerNormalization()(x + cls(**options)(x, x, use_causal_mask=True))
        return keras.Model(x, y + kl.Dense(32)(kl.Dense(64, activation="silu")(y)))
    return make


def words(*layers):
    """Padded texts, whose zeros are masked."""
    return stack((16,), lambda: kl.Embedding(50, 12, mask_zero=True), *layers, dtype="int32")


def u_net():
    def block(x, filters):
        for _ in range(2):
            x = kl.ReLU()(kl.BatchNormalization()(kl.Conv2D(filters, 3, padding="same")(x)))
        return x
    x = image = keras.Input((32, 32, 3))
    kept = []
    for filters in (8, 16):
        x = block(x, filters)
        kept.append(x)
        x = kl.MaxPooling2D()(x)
    x = block(x, 32)
    for filters, skip in zip((16, 8), reversed(kept)):
        x = kl.Conv2DTranspose(filters, 3, strides=2, padding="same")(x)
        x = block(kl.Concatenate()([x, skip]), filters)
    return keras.Model(image, kl.Conv2D(2, 1, activation="softmax")(x))


def squeeze_excite():
    image = keras.Input((24, 24, 8))
    x = kl.SeparableConv2D(16, 3, padding="same", activation="swish")(image)
    s = kl.Dense(4, activation="relu")(kl.GlobalAveragePooling2D(keepdims=True)(x))
    x = x * kl.Dense(16, activation="hard_sigmoid")(s)
    return keras.Model(image, kl.Dense(5)(kl.Flatten()(kl.AveragePooling2D(3, 2)(x))))


NETWORKS = {name.lower(): application(name, options) for name, options in APPLICATIONS.items()}
NETWORKS |= {
    "u_net": u_net,
    "squeeze_excite": squeeze_excite,
    "autoencoder": stack((64,), *(lambda n=n: kl.Dense(n, activation="relu")
                                  for n in (32, 8, 32, 64))),
    # Convolutions: TensorFlow's paddings, strides, dilations and groups.
    "conv_same": layer(IMAGE, kl.Conv2D, 8, 3, strides=2, padding="same", activation="elu"),
    "conv_even": layer(IMAGE, kl.Conv2D, 8, (2, 4), strides=(1, 2), padding="same"),
    "conv_dilated": layer(IMAGE, kl.Conv2D, 8, 3, dilation_rate=(2, 3), padding="same"),
    "conv_groups": layer(IMAGE, kl.Conv2D, 8, 3, groups=2),
    "conv1d_causal": layer(SERIES, kl.Conv1D, 8, 3, padding="causal", dilation_rate=2),
    "conv3d": layer(VOLUME, kl.Conv3D, 6, 3, strides=(1, 2, 1), padding="same"),
    "depthwise": layer(IMAGE, kl.DepthwiseConv2D, 3, strides=2, padding="same",
                       depth_multiplier=2),
    "depthwise1d": layer(SERIES, kl.DepthwiseConv1D, 5, padding="same"),
    "separable1d": layer(SERIES, kl.SeparableConv1D, 8, 3, padding="same", activation="selu"),
    "transposed": layer(IMAGE, kl.Conv2DTranspose, 8, 3, strides=2, padding="same"),
    "transposed_valid": layer(IMAGE, kl.Conv2DTranspose, 8, 4, strides=3),
    "transposed1d": layer(SERIES, kl.Conv1DTranspose, 8, 4, strides=2, padding="same"),
    "transposed3d": layer(VOLUME, kl.Conv3DTranspose, 6, 3, strides=2, padding="same"),
    # Pooling, padding and resizing.
    "max_pool_same": behind(IMAGE, kl.MaxPooling2D, 3, 2, padding="same"),
    "average_pool_same": behind(IMAGE, kl.AveragePooling2D, 3, 2, padding="same"),
    "average_pool1d": behind(SERIES, kl.AveragePooling1D, 3, 2, padding="same"),
    "max_pool3d": behind(VOLUME, kl.MaxPooling3D, 2),
    "global_max": behind(SERIES, kl.GlobalMaxPooling1D),
    "adaptive_average": behind(IMAGE, kl.AdaptiveAveragePooling2D, (4, 5)),
    "pad_crop": stack(IMAGE, lambda: kl.Dense(6), lambda: kl.ZeroPadding2D(((1, 2), (0, 3))),
                      lambda: kl.Cropping2D(((0, 1), (2, 0)))),
    "upsample_nearest": behind(IMAGE, kl.UpSampling2D, (2, 3)),
    "upsample_bilinear": behind(IMAGE, kl.UpSampling2D, 2, interpolation="bilinear"),
    "resize": behind(IMAGE, kl.Resizing, 9, 23),
    "resize_bicubic": behind(IMAGE, kl.Resizing, 23, 31, interpolation="bicubic"),
    "resize_crop": behind(IMAGE, kl.Resizing, 8, 8, crop_to_aspect_ratio=True),
    "center_crop": behind(IMAGE, kl.CenterCrop, 8, 9),
    # Normalisations.
    "layer_norm": layer(SERIES, kl.LayerNormalization, axis=[1, 2]),
    "rms_norm": layer(SERIES, kl.RMSNormalization),
    "group_norm": layer(IMAGE, kl.GroupNormalization, 3),
    "unit_norm": behind(SERIES, kl.UnitNormalization, axis=-1),
    "spectral_norm": stack(IMAGE, lambda: kl.SpectralNormalization(kl.Conv2D(4, 3))),
    "rescale_normalize": stack(IMAGE, lambda: kl.Rescaling(1 / 127.5, offset=-1), lambda:
                               kl.Normalization(mean=[0.1] * 6, variance=[0.5] * 6)),
    # Sequences.
    "lstm": layer(SERIES, kl.LSTM, 12, return_sequences=True),
    "lstm_stack": stack(SERIES, lambda: kl.LSTM(12, return_sequences=True), lambda: kl.LSTM(5),
                        lambda: kl.Dense(3, activation="softmax")),
    "gru": layer(SERIES, kl.GRU, 12, return_sequences=True),
    "gru_plain": layer(SERIES, kl.GRU, 12, reset_after=False, go_backwards=True),
    "rnn": layer(SERIES, kl.SimpleRNN, 12, activation="relu"),
    "bidirectional": stack(SERIES, lambda: kl.Bidirectional(kl.GRU(7, return_sequences=True)),
                           lambda: kl.Bidirectional(kl.LSTM(5), merge_mode="sum")),
    "lstm_unrolled": layer(SERIES, kl.LSTM, 8, unroll=True),
    "conv_lstm": layer((5, 9, 8, 3), kl.ConvLSTM2D, 4, 3, padding="same"),
    "time_distributed": stack((5, 12, 12, 3), lambda: kl.TimeDistributed(
        kl.Conv2D(4, 3, activation="relu")), lambda: kl.TimeDistributed(kl.Flatten()),
                              lambda: kl.LSTM(6)),
    "words_lstm": words(lambda: kl.LSTM(10), lambda: kl.Dense(1, activation="sigmoid")),
    "words_gru": words(lambda: kl.Bidirectional(kl.GRU(6)), lambda: kl.Dense(3)),
    "words_average": words(lambda: kl.GlobalAveragePooling1D(), lambda: kl.Dense(3)),
    "repeat_permute": stack((6,), lambda: kl.Dense(6), lambda: kl.RepeatVector(4),
                            lambda: kl.Permute((2, 1)), lambda: kl.Reshape((3, -1))),
    # Attention.
    "multi_head": attention(kl.MultiHeadAttention, num_heads=4, key_dim=8),
    "grouped_query": attention(kl.GroupQueryAttention, head_dim=8, num_query_heads=4,
                               num_key_value_heads=2),
    "einsum_dense": layer((6, 8), kl.EinsumDense, "abc,cde->abde", (6, 3, 5), bias_axes="e"),
    "additive_attention": join(kl.AdditiveAttention),
    "dot_attention": join(kl.Attention, use_scale=True),
    # Layers of two inputs.
    "dot": join(kl.Dot, axes=(2, 2), normalize=True),
    "maximum": join(kl.Maximum), "minimum": join(kl.Minimum), "average": join(kl.Average),
    "multiply": join(kl.Multiply), "subtract": join(kl.Subtract), "add": join(kl.Add),
    # Activations beside those above.
    "prelu": layer(IMAGE, kl.PReLU, shared_axes=[1, 2]),
    "leaky": behind(IMAGE, kl.LeakyReLU, 0.1),
    "relu_options": behind(IMAGE, kl.ReLU, max_value=2.0, negative_slope=0.1, threshold=0.3),
} | {f"activation_{name}": layer(SERIES, kl.Dense, 8, activation=name)
     for name in "celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_tanh "
                 "leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu sigmoid silu "
                 "soft_shrink softmax softplus softsign sparse_plus sparsemax squareplus tanh "
                 "tanh_shrink threshold".split()} | {
    # In front of a network.
    "mel_spectrogram": layer((4000,), kl.MelSpectrogram, fft_length=512, sequence_stride=256,
                             num_mel_bins=20, sampling_rate=8000),
    "stft_spectrogram": layer((2000, 1), kl.STFTSpectrogram, mode="log", frame_length=256,
                              frame_step=128),
    "discretize": layer((6,), kl.Discretization, bin_boundaries=[-1.0, 0.0, 0.5]),
    "one_hot": stack((1,), lambda: kl.CategoryEncoding(num_tokens=12, output_mode="one_hot"),
                     lambda: kl.Dense(4), dtype="int32"),
    "noise_dropout": stack(SERIES, lambda: kl.GaussianNoise(0.1), lambda: kl.SpatialDropout1D(0.3),
                           lambda: kl.Dense(4), lambda: kl.Dropout(0.5)),
}
