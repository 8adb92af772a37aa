// SPDX-License-Identifier: 0BSD
// node learn.mjs: what index.html does, without a page.
import fs from "node:fs";
import { load } from "./digits.mjs";

const files = ["net.wasm", "digits_train.bin", "digits_test.bin"].map((name) =>
  new Uint8Array(fs.readFileSync(new URL(name, import.meta.url))));
const network = await load(...files);
console.log(`before: right ${network.right()} of ${network.images}`);
for (let epoch = 0; epoch < 3; epoch++) {
  const begin = performance.now();
  const loss = network.epoch(epoch);
  const milliseconds = (performance.now() - begin).toFixed(0);
  console.log(`epoch ${epoch + 1}: loss ${loss.toFixed(4)}, ${milliseconds} ms, ` +
    `right ${network.right()} of ${network.images}`);
}
