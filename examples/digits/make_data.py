"""Writes digits_train.bin and digits_test.bin from scikit-learn's copy of the digits.

The split is stratified and fixed; the files are kept in the repository, so this script is only
needed to check where they come from.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from digits_data import HERE


def main():
    digits = load_digits()
    splits = train_test_split(
        digits.data, digits.target, test_size=297, stratify=digits.target, random_state=0
    )
    for name, pixels, labels in (("train", splits[0], splits[2]), ("test", splits[1], splits[3])):
        assert pixels.min() >= 0 and pixels.max() <= 16 and np.all(pixels == np.rint(pixels))
        records = np.concatenate([pixels, labels[:, None]], axis=1).astype(np.uint8)
        records.tofile(HERE / f"digits_{name}.bin")
        print(f"digits_{name}.bin: {len(records)} images, {records.nbytes} bytes, "
              f"per class {np.bincount(labels).tolist()}")


if __name__ == "__main__":
    main()
