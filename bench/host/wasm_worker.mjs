// node wasm_worker.mjs PROGRAM ENTRY ARENA_BYTES INPUT_BYTES OUTPUT_BYTES INPUTS OUTPUTS
//
// worker.c for a library of WebAssembly: PROGRAM is the library linked alone, lists of bytes are
// separated by commas. Reads all inputs from one file, runs once, writes all outputs to the other,
// and answers "time N" with the nanoseconds of wall clock and of processor time that N calls took.
import fs from "node:fs";

const [program, entry, arenaBytes, inputBytes, outputBytes, inputFile, outputFile] =
  process.argv.slice(2);
const ALIGNMENT = 64, PAGE = 1 << 16;

const { exports } = (await WebAssembly.instantiate(fs.readFileSync(program), {})).instance;
let top = exports.__heap_base.value;

function allocate(bytes) {
  const address = Math.ceil(top / ALIGNMENT) * ALIGNMENT;
  top = address + bytes;
  const missing = Math.ceil((top - exports.memory.buffer.byteLength) / PAGE);
  if (missing > 0) exports.memory.grow(missing);
  return address;
}

const sizesOf = (list) => list.split(",").filter(Boolean).map(Number);

/** Buffers of these sizes, and the struct of their addresses. */
function place(sizes) {
  const buffers = sizes.map((bytes) => ({ address: allocate(bytes), bytes }));
  const struct = allocate(4 * sizes.length);
  new Uint32Array(exports.memory.buffer, struct).set(buffers.map((buffer) => buffer.address));
  return { buffers, struct };
}

const viewOf = ({ address, bytes }) => new Uint8Array(exports.memory.buffer, address, bytes);

const inputs = place(sizesOf(inputBytes)), outputs = place(sizesOf(outputBytes));
const arena = allocate(Number(arenaBytes));
const given = fs.readFileSync(inputFile);
let at = 0;
for (const buffer of inputs.buffers) {
  viewOf(buffer).set(given.subarray(at, at + buffer.bytes));
  at += buffer.bytes;
}

const run = exports[entry];
function call() {
  if (run(inputs.struct, outputs.struct, arena, Number(arenaBytes), 0) !== 0) process.exit(4);
}

call();
fs.writeFileSync(outputFile, Buffer.concat(outputs.buffers.map(viewOf)));

const processorTime = () => {
  const { user, system } = process.cpuUsage();
  return 1000 * (user + system);
};

function answer(count) {
  for (let i = 0; i <= count / 8; i++) call(); // the last worker left other things cached
  const processor = processorTime(), wall = process.hrtime.bigint();
  for (let i = 0; i < count; i++) call();
  const took = process.hrtime.bigint() - wall;
  fs.writeSync(1, `${took} ${processorTime() - processor}\n`);
}

fs.writeSync(1, `ready {"version": "Node.js ${process.versions.node}"}\n`);
// Read as they come: what node:readline reads ahead keeps the process awake.
const bytes = Buffer.alloc(4096);
for (let rest = ""; ;) {
  const count = fs.readSync(0, bytes);
  if (count === 0) break;
  const lines = (rest + bytes.toString("latin1", 0, count)).split("\n");
  rest = lines.pop();
  for (const line of lines) answer(Number(line.split(" ")[1]));
}
