// See jit.h. The object a library would hold is loaded into memory as it is, so what runs here is
// what the archive has.
#include "backend/llvm/jit.h"

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/Memory.h>

#include <cstring>

#include "backend/library/abi.h"
#include "backend/llvm/address_area.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// All a library may ask of its surroundings; nothing else is found.
class Resolver : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbol(const std::string& name) override {
    const std::map<std::string, void*> known = {
        {"memcpy", reinterpret_cast<void*>(&memcpy)},
        {"memmove", reinterpret_cast<void*>(&memmove)},
        {"memset", reinterpret_cast<void*>(&memset)},
    };
    const auto found = known.find(name);
    if (found == known.end()) return nullptr;
    return llvm::JITSymbol(reinterpret_cast<uint64_t>(found->second),
                           llvm::JITSymbolFlags::Exported);
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
};

/// Element type and shape of an argument, without its buffer.
struct Argument {
  std::string name;
  ElementType element = ElementType::f32;
  Dims shape;
};

std::vector<Argument> arguments_of(const loop::Program& program,
                                   const std::vector<loop::BufferId>& ids) {
  std::vector<Argument> result;
  for (const loop::BufferId id : ids) {
    const loop::Buffer& buffer = program.buffer(id);
    result.push_back({buffer.name, buffer.element, buffer.shape});
  }
  return result;
}

struct Entry {
  EntryAbi abi;
  std::vector<Argument> inputs, outputs;
  SymbolRanges symbols;
};

/// Values of the symbols: those given, else from the inputs' shapes.
SymbolValues live_sizes(const Entry& entry, const std::vector<Literal>& inputs,
                        const SymbolValues& given) {
  SymbolValues values = given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Argument& argument = entry.inputs[i];
    const std::vector<int64_t>& shape = inputs[i].shape();
    if (shape.size() != argument.shape.size() || inputs[i].element() != argument.element) {
      throw CompileError(fmt::format("input \"{}\" is {}, not {}", argument.name,
                                     to_string(inputs[i].type()),
                                     to_string(TensorType{argument.element, argument.shape})));
    }
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      for (const SizeField& size : entry.abi.sizes) {
        if (argument.shape[axis] == Dim::symbol(size.symbol)) {
          values.emplace(size.symbol, shape[axis]);
        }
      }
    }
  }
  for (const SizeField& size : entry.abi.sizes) {
    if (!values.contains(size.symbol)) {
      throw CompileError(fmt::format("no input shows the size of \"{}\"", size.symbol));
    }
  }
  return values;
}

std::vector<int64_t> live_shape(const Argument& argument, const SymbolValues& sizes) {
  std::vector<int64_t> shape;
  for (const Dim& dim : argument.shape) shape.push_back(dim.evaluate(sizes));
  return shape;
}

/// Memory of `bytes` bytes whose start is a multiple of `alignment`.
class AlignedMemory {
 public:
  AlignedMemory(int64_t bytes, int64_t alignment)
      : storage_(static_cast<size_t>(bytes + alignment)) {
    const uint64_t start = reinterpret_cast<uint64_t>(storage_.data());
    const uint64_t unit = static_cast<uint64_t>(alignment);
    data_ = storage_.data() + ((start + unit - 1) / unit * unit - start);
  }
  std::byte* data() { return data_; }

 private:
  std::vector<std::byte> storage_;
  std::byte* data_ = nullptr;
};

/// The three forms an entry point may have (EntryAbi).
int32_t call_entry(const EntryAbi& abi, void* code, void* state, const void* in, const void* out,
                   void* arena, size_t arena_bytes) {
  if (!abi.has_state) {
    using Function = int32_t (*)(const void*, const void*, void*, size_t, const void*);
    return reinterpret_cast<Function>(code)(in, out, arena, arena_bytes, nullptr);
  }
  if (!abi.has_structs) {
    using Function = int32_t (*)(void*, void*, size_t, const void*);
    return reinterpret_cast<Function>(code)(state, arena, arena_bytes, nullptr);
  }
  using Function = int32_t (*)(void*, const void*, const void*, void*, size_t, const void*);
  return reinterpret_cast<Function>(code)(state, in, out, arena, arena_bytes, nullptr);
}

/// Gives the sections of an object places in one area; what does not fit comes from the system.
class AreaMapper : public llvm::SectionMemoryManager::MemoryMapper {
 public:
  explicit AreaMapper(size_t bytes) : area_(bytes) {}

  llvm::sys::MemoryBlock allocateMappedMemory(llvm::SectionMemoryManager::AllocationPurpose,
                                              size_t bytes,
                                              const llvm::sys::MemoryBlock* near_block,
                                              unsigned flags, std::error_code& error) override {
    std::byte* place = area_.take(bytes);
    if (place != nullptr) return llvm::sys::MemoryBlock(place, whole_pages(bytes));
    return llvm::sys::Memory::allocateMappedMemory(bytes, near_block, flags, error);
  }
  std::error_code protectMappedMemory(const llvm::sys::MemoryBlock& block,
                                      unsigned flags) override {
    return llvm::sys::Memory::protectMappedMemory(block, flags);
  }
  std::error_code releaseMappedMemory(llvm::sys::MemoryBlock& block) override {
    if (area_.holds(block.base())) return {};  // released as a whole
    return llvm::sys::Memory::releaseMappedMemory(block);
  }

 private:
  AddressArea area_;
};

uint64_t word_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

struct CompiledProgram::Impl {
  Abi abi;
  std::map<std::string, Entry> entries;
  int64_t stack_bytes = 0;
  std::map<std::string, void*> symbols;
  std::unique_ptr<AreaMapper> mapper;  // outlives the sections in it
  std::unique_ptr<llvm::SectionMemoryManager> memory;
};

CompiledProgram::CompiledProgram(const loop::Program& program, const TargetInfo& target,
                                 const LlvmOptions& options)
    : impl_(std::make_unique<Impl>()) {
  const ObjectFile object = emit_object(program, target, options);
  impl_->stack_bytes = object.stack_bytes;
  impl_->abi = abi_of(program);
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object.bytes, "program"));
  BC_CHECK(static_cast<bool>(file), "object: {}", llvm::toString(file.takeError()));
  Resolver resolver;
  // The sections take no more than the object does, but for a page and an alignment of each.
  impl_->mapper = std::make_unique<AreaMapper>(object.bytes.size() + (size_t{1} << 20));
  impl_->memory = std::make_unique<llvm::SectionMemoryManager>(impl_->mapper.get());
  llvm::RuntimeDyld loader(*impl_->memory, resolver);
  const std::unique_ptr<llvm::RuntimeDyld::LoadedObjectInfo> info = loader.loadObject(**file);
  BC_CHECK(info != nullptr && !loader.hasError(), "loading code: {}",
           loader.getErrorString().str());
  loader.finalizeWithMemoryManagerLocking();
  BC_CHECK(!loader.hasError(), "linking code: {}", loader.getErrorString().str());
  for (size_t i = 0; i < program.entries.size(); ++i) {
    const loop::EntryPoint& entry = program.entries[i];
    const EntryAbi& abi = impl_->abi.entries[i];
    impl_->entries[entry.name] = {abi, arguments_of(program, entry.inputs),
                                  arguments_of(program, entry.outputs), program.symbols};
    impl_->symbols[abi.symbol] = reinterpret_cast<void*>(loader.getSymbol(abi.symbol).getAddress());
  }
  for (const StateFunction& function : impl_->abi.functions) {
    impl_->symbols[function.symbol] =
        reinterpret_cast<void*>(loader.getSymbol(function.symbol).getAddress());
  }
}

CompiledProgram::~CompiledProgram() = default;
CompiledProgram::CompiledProgram(CompiledProgram&&) noexcept = default;
CompiledProgram& CompiledProgram::operator=(CompiledProgram&&) noexcept = default;

void* CompiledProgram::symbol(const std::string& name) const {
  const auto found = impl_->symbols.find(name);
  BC_CHECK(found != impl_->symbols.end() && found->second != nullptr, "no entry point {}", name);
  return found->second;
}

int64_t CompiledProgram::stack_bytes() const { return impl_->stack_bytes; }

StateMemory::StateMemory(int64_t bytes, int64_t alignment)
    : storage_(new std::byte[static_cast<size_t>(bytes + alignment)]()), bytes_(bytes) {
  void* start = storage_.get();
  size_t room = static_cast<size_t>(bytes + alignment);
  data_ = std::align(static_cast<size_t>(alignment), static_cast<size_t>(bytes), start, room);
}

StateMemory CompiledProgram::make_state(uint64_t seed) const {
  const StateAbi& abi = impl_->abi.state;
  BC_CHECK(abi.bytes > 0, "{} has no state", impl_->abi.prefix);
  StateMemory state(abi.bytes, abi.alignment);
  using Init = int32_t (*)(void*, size_t, uint64_t);
  const Init init = reinterpret_cast<Init>(symbol(impl_->abi.prefix + "_init"));
  const int32_t status = init(state.data(), static_cast<size_t>(abi.bytes), seed);
  BC_CHECK(status == 0, "{}_init answered {}", impl_->abi.prefix, status);
  return state;
}

std::vector<Literal> CompiledProgram::run(const std::string& name,
                                          const std::vector<Literal>& inputs,
                                          const SymbolValues& sizes) const {
  BC_CHECK(impl_->abi.state.bytes == 0, "{} needs its state", impl_->abi.prefix);
  return call(name, inputs, nullptr, sizes);
}

std::vector<Literal> CompiledProgram::run(const std::string& name,
                                          const std::vector<Literal>& inputs, StateMemory& state,
                                          const SymbolValues& sizes) const {
  return call(name, inputs, state.data(), sizes);
}

std::vector<Literal> CompiledProgram::call(const std::string& name,
                                           const std::vector<Literal>& inputs, void* state,
                                           const SymbolValues& given) const {
  const auto found = impl_->entries.find(name);
  BC_CHECK(found != impl_->entries.end(), "no entry point {}", name);
  const Entry& entry = found->second;
  if (inputs.size() != entry.inputs.size()) {
    throw CompileError(
        fmt::format("{} takes {} inputs, not {}", name, entry.inputs.size(), inputs.size()));
  }
  SymbolValues sizes = live_sizes(entry, inputs, given);
  // Room for the largest result there can be.
  for (const TensorField& field : entry.abi.outputs) {
    if (!field.extent.empty()) sizes[field.extent] = entry.symbols.at(field.extent).max;
  }
  std::vector<uint64_t> in_words, out_words;
  for (const SizeField& size : entry.abi.sizes) {
    in_words.push_back(static_cast<uint64_t>(sizes.at(size.symbol)));
  }
  std::vector<AlignedMemory> copies;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Argument& argument = entry.inputs[i];
    const std::vector<int64_t> shape = live_shape(argument, sizes);
    if (shape != inputs[i].shape()) {
      throw CompileError(fmt::format("input \"{}\" does not have the shape {}", argument.name,
                                     to_string(argument.shape)));
    }
    const std::span<const std::byte> bytes = inputs[i].bytes();
    AlignedMemory& copy = copies.emplace_back(static_cast<int64_t>(bytes.size()), 64);
    if (!bytes.empty()) memcpy(copy.data(), bytes.data(), bytes.size());
    in_words.push_back(word_of(copy.data()));
  }
  std::vector<std::vector<std::byte>> results;
  for (const Argument& argument : entry.outputs) {
    int64_t bytes = byte_size(argument.element);
    for (const int64_t extent : live_shape(argument, sizes)) bytes *= extent;
    // One byte more: an empty tensor has an address too.
    out_words.push_back(
        word_of(results.emplace_back(static_cast<size_t>(bytes) + 1, std::byte{0xa5}).data()));
  }
  in_words.push_back(0);
  out_words.push_back(0);
  AlignedMemory arena(impl_->abi.arena_bytes, std::max<int64_t>(impl_->abi.arena_alignment, 1));
  const int32_t status =
      call_entry(entry.abi, symbol(entry.abi.symbol), state, in_words.data(), out_words.data(),
                 arena.data(), static_cast<size_t>(impl_->abi.arena_bytes));
  if (status != 0) {
    throw CompileError(
        fmt::format("{} answered {}", entry.abi.symbol, macro_of(static_cast<Status>(status))));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& symbol = entry.abi.outputs[i].extent;
    if (!symbol.empty()) memcpy(&sizes[symbol], results[i].data(), sizeof(int64_t));
  }
  std::vector<Literal> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!entry.abi.outputs[i].extent.empty()) continue;  // the shapes tell
    const std::vector<int64_t> shape = live_shape(entry.outputs[i], sizes);
    int64_t bytes = byte_size(entry.outputs[i].element);
    for (const int64_t extent : shape) bytes *= extent;
    results[i].resize(static_cast<size_t>(bytes));
    outputs.emplace_back(entry.outputs[i].element, shape, std::move(results[i]));
  }
  return outputs;
}

}  // namespace backcast
