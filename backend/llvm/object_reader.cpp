// See object_reader.h.
#include "backend/llvm/object_reader.h"

#include <llvm/BinaryFormat/COFF.h>
#include <llvm/Object/Archive.h>
#include <llvm/Object/COFF.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/MachO.h>
#include <llvm/Object/SymbolSize.h>
#include <llvm/Object/Wasm.h>

#include "ir/graph/error.h"

namespace backcast {
namespace {

template <class T>
T checked(llvm::Expected<T> value, const char* what) {
  BC_CHECK(static_cast<bool>(value), "{}: {}", what, llvm::toString(value.takeError()));
  return std::move(*value);
}

ObjectSection section_of(const llvm::object::ELFSectionRef& section) {
  ObjectSection result;
  result.name = checked(section.getName(), "section").str();
  result.bytes = static_cast<int64_t>(section.getSize());
  result.allocated = (section.getFlags() & llvm::ELF::SHF_ALLOC) != 0;
  result.writable = (section.getFlags() & llvm::ELF::SHF_WRITE) != 0;
  result.executable = (section.getFlags() & llvm::ELF::SHF_EXECINSTR) != 0;
  return result;
}

ObjectSymbol symbol_of(const llvm::object::SymbolRef& symbol) {
  const uint32_t flags = checked(symbol.getFlags(), "symbol");
  ObjectSymbol result;
  result.name = checked(symbol.getName(), "symbol").str();
  result.defined = (flags & llvm::object::SymbolRef::SF_Undefined) == 0;
  result.global = (flags & llvm::object::SymbolRef::SF_Global) != 0;
  return result;
}

void read_elf(const llvm::object::ELFObjectFileBase& file, ObjectSummary& summary) {
  summary.elf_flags = file.getPlatformFlags();
  for (const llvm::object::ELFSectionRef section : file.sections()) {
    summary.sections.push_back(section_of(section));
  }
  for (const llvm::object::ELFSymbolRef symbol : file.symbols()) {
    ObjectSymbol entry = symbol_of(symbol);
    entry.bytes = static_cast<int64_t>(symbol.getSize());
    if (!entry.name.empty()) summary.symbols.push_back(std::move(entry));
  }
}

/// What the linker puts into memory are segments of data; a section holds all of them, another one
/// all code.
void read_wasm(const llvm::object::WasmObjectFile& file, ObjectSummary& summary) {
  for (const llvm::object::SectionRef& section : file.sections()) {
    if (!section.isText()) continue;
    summary.sections.push_back({checked(section.getName(), "section").str(),
                                static_cast<int64_t>(section.getSize()), true, false, true});
  }
  for (const llvm::object::WasmSegment& segment : file.dataSegments()) {
    summary.sections.push_back({segment.Data.Name.str(),
                                static_cast<int64_t>(segment.Data.Content.size()), true,
                                !segment.Data.Name.starts_with(".rodata"), false});
  }
  for (const llvm::object::SymbolRef& symbol : file.symbols()) {
    const llvm::object::WasmSymbol& of_wasm = file.getWasmSymbol(symbol);
    // The others are the engine's: the stack pointer, the table of functions that are called by
    // address.
    if (!of_wasm.isTypeFunction() && !of_wasm.isTypeData()) continue;
    ObjectSymbol entry = symbol_of(symbol);
    entry.global = of_wasm.isBindingGlobal() || of_wasm.isBindingWeak();
    if (of_wasm.isTypeFunction() && entry.defined) entry.bytes = file.getSymbolSize(symbol);
    summary.symbols.push_back(std::move(entry));
  }
}

/// Of Windows and of Apple's systems, whose symbols have no sizes but their distances.
template <class File>
void read_other(const File& file, ObjectSummary& summary) {
  for (const llvm::object::SectionRef& section : file.sections()) {
    ObjectSection entry{checked(section.getName(), "section").str(),
                        static_cast<int64_t>(section.getSize()), true, false, section.isText()};
    if constexpr (std::is_same_v<File, llvm::object::COFFObjectFile>) {
      const uint32_t flags = file.getCOFFSection(section)->Characteristics;
      entry.allocated =
          (flags & (llvm::COFF::IMAGE_SCN_LNK_REMOVE | llvm::COFF::IMAGE_SCN_LNK_INFO |
                    llvm::COFF::IMAGE_SCN_MEM_DISCARDABLE)) == 0;
      entry.writable = (flags & llvm::COFF::IMAGE_SCN_MEM_WRITE) != 0;
    } else {
      entry.writable = file.getSectionFinalSegmentName(section.getRawDataRefImpl()) == "__DATA";
    }
    summary.sections.push_back(std::move(entry));
  }
  for (const auto& [symbol, bytes] : llvm::object::computeSymbolSizes(file)) {
    ObjectSymbol entry = symbol_of(symbol);
    if (file.isMachO() && entry.name.starts_with("_")) entry.name.erase(0, 1);
    entry.bytes = entry.defined ? static_cast<int64_t>(bytes) : 0;
    summary.symbols.push_back(std::move(entry));
  }
}

}  // namespace

ObjectSummary read_object(std::string_view bytes) {
  const llvm::MemoryBufferRef buffer(llvm::StringRef(bytes.data(), bytes.size()), "object");
  const std::unique_ptr<llvm::object::ObjectFile> file =
      checked(llvm::object::ObjectFile::createObjectFile(buffer), "object");
  ObjectSummary result;
  result.architecture = llvm::Triple::getArchTypeName(file->getArch()).str();
  result.bits = 8 * file->getBytesInAddress();
  if (const auto* wasm = llvm::dyn_cast<llvm::object::WasmObjectFile>(file.get())) {
    read_wasm(*wasm, result);
  } else if (const auto* coff = llvm::dyn_cast<llvm::object::COFFObjectFile>(file.get())) {
    read_other(*coff, result);
  } else if (const auto* mach = llvm::dyn_cast<llvm::object::MachOObjectFile>(file.get())) {
    read_other(*mach, result);
  } else {
    const auto* elf = llvm::dyn_cast<llvm::object::ELFObjectFileBase>(file.get());
    BC_CHECK(elf != nullptr, "an object of an unknown format");
    read_elf(*elf, result);
  }
  return result;
}

std::vector<std::pair<std::string, std::string>> read_archive(std::string_view bytes) {
  const llvm::MemoryBufferRef buffer(llvm::StringRef(bytes.data(), bytes.size()), "archive");
  const std::unique_ptr<llvm::object::Archive> archive =
      checked(llvm::object::Archive::create(buffer), "archive");
  std::vector<std::pair<std::string, std::string>> members;
  llvm::Error error = llvm::Error::success();
  for (const llvm::object::Archive::Child& child : archive->children(error)) {
    members.emplace_back(checked(child.getName(), "archive").str(),
                         checked(child.getBuffer(), "archive").str());
  }
  BC_CHECK(!error, "archive: {}", llvm::toString(std::move(error)));
  return members;
}

}  // namespace backcast
