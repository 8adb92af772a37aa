"""Runs the four ONNX files under ONNX Runtime, image by image, and prints their accuracy."""

import numpy as np
import onnxruntime as ort

from digits_data import HERE, load

MODELS = ("digits_cnn", "digits_cnn_untrained", "digits_mlp", "digits_mlp_untrained")


def count_correct(session, images, labels):
    correct, loss = 0, 0.0
    for image, label in zip(images, labels):
        logits = session.run(["logits"], {"image": image[None]})[0][0].astype(np.float64)
        correct += int(logits.argmax() == label)
        loss += np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[label]
    return correct, loss / len(labels)


def main():
    for name in MODELS:
        session = ort.InferenceSession(HERE / f"{name}.onnx", providers=["CPUExecutionProvider"])
        for split in ("train", "test"):
            images, labels = load(split)
            correct, loss = count_correct(session, images, labels)
            print(f"{name:22s} {split:5s} {correct}/{len(labels)} = "
                  f"{100 * correct / len(labels):.2f} %, loss {loss:.4f}")


if __name__ == "__main__":
    main()
