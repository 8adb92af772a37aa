// node harness.mjs PROGRAM REQUEST RESPONSE: what harness_io_wasm.c imports, on files. The exit
// status is the program's, or 70 (HARNESS_EXIT_FAULT) when it traps.
import fs from "node:fs";

const [program, requestPath, responsePath] = process.argv.slice(2);
if (responsePath === undefined) {
  console.error("usage: node harness.mjs PROGRAM REQUEST RESPONSE");
  process.exit(71);
}
const request = fs.openSync(requestPath, "r");
const response = fs.openSync(responsePath, "w");
let memory;

// Memory moves when it grows: a view lasts for one call.
const bytesAt = (address, count) => new Uint8Array(memory.buffer, address >>> 0, count >>> 0);

function textAt(address) {
  const rest = new Uint8Array(memory.buffer, address >>> 0);
  return new TextDecoder().decode(rest.subarray(0, rest.indexOf(0)));
}

// `transfer` moves part of the bytes at a time and tells how many; none at the end of a file.
function wholly(transfer, address, count) {
  const bytes = bytesAt(address, count);
  let done = 0;
  while (done < bytes.length) {
    const moved = transfer(bytes.subarray(done));
    if (moved === 0) break;
    done += moved;
  }
  return done;
}

const host = {
  read: (address, count) => wholly((bytes) => fs.readSync(request, bytes), address, count),
  write: (address, count) => wholly((bytes) => fs.writeSync(response, bytes), address, count),
  print: (address) => process.stderr.write(textAt(address)),
};

const { instance } = await WebAssembly.instantiate(fs.readFileSync(program), { host });
memory = instance.exports.memory;
try {
  process.exitCode = instance.exports.start();
} catch (error) {
  const running = instance.exports.running();
  console.error(`harness: ${error.message} in ${running ? textAt(running) : "the harness"}`);
  process.exitCode = 70;
}
