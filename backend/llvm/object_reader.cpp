// See object_reader.h.
#include "backend/llvm/object_reader.h"

#include <llvm/Object/Archive.h>
#include <llvm/Object/ELFObjectFile.h>

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

}  // namespace

ObjectSummary read_object(std::string_view bytes) {
  const llvm::MemoryBufferRef buffer(llvm::StringRef(bytes.data(), bytes.size()), "object");
  const std::unique_ptr<llvm::object::ObjectFile> file =
      checked(llvm::object::ObjectFile::createELFObjectFile(buffer), "object");
  const auto& elf = llvm::cast<llvm::object::ELFObjectFileBase>(*file);
  ObjectSummary result;
  result.architecture = llvm::Triple::getArchTypeName(file->getArch()).str();
  result.bits = 8 * file->getBytesInAddress();
  result.elf_flags = elf.getPlatformFlags();
  for (const llvm::object::ELFSectionRef section : elf.sections()) {
    result.sections.push_back(section_of(section));
  }
  for (const llvm::object::ELFSymbolRef symbol : elf.symbols()) {
    const uint32_t flags = checked(symbol.getFlags(), "symbol");
    ObjectSymbol entry;
    entry.name = checked(symbol.getName(), "symbol").str();
    entry.defined = (flags & llvm::object::SymbolRef::SF_Undefined) == 0;
    entry.global = (flags & llvm::object::SymbolRef::SF_Global) != 0;
    entry.bytes = static_cast<int64_t>(symbol.getSize());
    if (!entry.name.empty()) result.symbols.push_back(std::move(entry));
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
