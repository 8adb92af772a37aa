// See sample_program.h.
#include "tests/library/sample_program.h"

namespace backcast {

using loop::AccessMode;
using loop::BufferClass;
using loop::BufferId;
using loop::Scalar;

namespace {

BufferId add(loop::Program& program, const std::string& name, ElementType element, Dims shape,
             BufferClass kind, int64_t offset = -1) {
  loop::Buffer buffer;
  buffer.name = name;
  buffer.element = element;
  buffer.shape = std::move(shape);
  buffer.kind = kind;
  buffer.offset = offset;
  program.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program.buffers.size() - 1);
}

loop::Kernel kernel(const std::string& name, std::vector<loop::BufferParam> buffers,
                    std::vector<Loc> locs, int64_t macs) {
  loop::Kernel result;
  result.name = name;
  result.buffers = std::move(buffers);
  result.sizes = {"N"};
  result.locs = std::move(locs);
  result.macs = macs;
  const std::string out = result.buffers.back().name;
  const Scalar element = result.buffers.back().element;
  result.body = loop::for_loop("i", 0, loop::var("N") * 2,
                               loop::store(out, loop::var("i"), loop::constant({element, 1}, 1)));
  return result;
}

}  // namespace

loop::Program sample_program() {
  loop::Program program;
  program.name = "mlp";
  const Dim n = Dim::symbol("N");
  program.symbols["N"] = {1, 8};
  const BufferId x = add(program, "x", ElementType::f32, {n, 4}, BufferClass::input);
  const BufferId w = add(program, "fc.weight", ElementType::f32, {4, 2}, BufferClass::constant);
  program.buffers[static_cast<size_t>(w)].value =
      Literal::from_doubles(ElementType::f32, {4, 2}, {0.5, -1, 2, 3, 0.1, 1e-9, -0.0, 7});
  const BufferId hidden = add(program, "hidden", ElementType::f32, {n, 4}, BufferClass::arena, 0);
  const BufferId mask = add(program, "mask", ElementType::boolean, {n, 2}, BufferClass::arena, 128);
  const BufferId y = add(program, "y", ElementType::f32, {n, 2}, BufferClass::output);
  const BufferId p = add(program, "positive", ElementType::boolean, {n, 2}, BufferClass::output);
  program.arena_bytes = 256;
  program.arena_bound = 144;
  program.arena_alignment = 16;
  program.kernels["scale"] = kernel("scale",
                                    {{"x", Scalar::f32, {n, 4}, AccessMode::read, {}},
                                     {"h", Scalar::f32, {n, 4}, AccessMode::write, {}}},
                                    {{"scale1", "Mul", Origin::imported}}, 0);
  program.kernels["dense"] =
      kernel("dense",
             {{"h", Scalar::f32, {n, 4}, AccessMode::read, {}},
              {"w", Scalar::f32, {4, 2}, AccessMode::read, {}},
              {"m", Scalar::boolean, {n, 2}, AccessMode::write, {}},
              {"y", Scalar::f32, {n, 2}, AccessMode::write, {}}},
             {{"fc1", "Gemm", Origin::imported}, {"relu1", "Relu", Origin::fused_from}}, 64);
  loop::EntryPoint entry;
  entry.inputs = {x};
  entry.outputs = {y, p};
  const Loc loc = {"fc1", "Gemm", Origin::imported};
  entry.steps = {{loop::StepKind::call, "scale", {x, hidden}, {n}, 0, loc},
                 {loop::StepKind::call, "dense", {hidden, w, mask, y}, {n}, 0, loc},
                 {loop::StepKind::copy, "", {mask, p}, {}, 0, {"greater1", "Greater"}}};
  program.entries = {entry};
  return program;
}

loop::Program program_with_odd_names() {
  loop::Program program;
  program.name = "odd";
  program.symbols["batch size"] = {1, 4};
  program.symbols["int"] = {2, 2};
  loop::EntryPoint entry;
  const Dims shape = {Dim::symbol("batch size"), Dim::symbol("int")};
  for (const char* name : {"int", "a/b:0", "a b:0", "a_b_0", "1st", "_x", "größe", "X", "x", "",
                           "BC_OK", "errno", "*/ \n"}) {
    entry.inputs.push_back(add(program, name, ElementType::i16, shape, BufferClass::input));
    entry.outputs.push_back(add(program, name, ElementType::bf16, {Dim(3)}, BufferClass::output));
  }
  entry.inputs.push_back(add(program, "empty", ElementType::f32, {Dim(0)}, BufferClass::input));
  program.entries = {entry};
  return program;
}

}  // namespace backcast
