// SPDX-License-Identifier: 0BSD
// web.c's functions on typed arrays, for the page and for Node.js.
const RECORD = 65; // 64 pixels of 0 to 16, then the label
const TRAIN = 0, TEST = 1, DRAWN = 2;

/** `wasm`, `train`, `test`: bytes of net.wasm and of the two files of images. */
export async function load(wasm, train, test) {
  const { exports } = (await WebAssembly.instantiate(wasm)).instance;
  const write = (set, bytes) =>
    new Uint8Array(exports.memory.buffer, exports.images(set), bytes.length).set(bytes);
  write(TRAIN, train);
  write(TEST, test);
  const images = test.length / RECORD;
  if (exports.start() !== 0) throw new Error("net_init refuses");
  return {
    images,
    /** One pass over the training images: the mean loss. */
    epoch(number) {
      const loss = exports.epoch(number, train.length / RECORD);
      if (!(loss >= 0)) throw new Error(`net_train_step ended with status ${-loss}`);
      return loss;
    },
    /** How many of the test images are read as their labels say. */
    right: () => exports.right(images),
    /** The digit that 64 pixels show. */
    classify(pixels) {
      write(DRAWN, pixels);
      return exports.classify();
    },
  };
}
