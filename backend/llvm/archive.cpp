// See archive.h.
#include "backend/llvm/archive.h"

#include <llvm/Object/ArchiveWriter.h>

#include "ir/graph/error.h"

namespace backcast {

std::string write_archive(const std::vector<std::pair<std::string, std::string>>& members) {
  std::vector<llvm::NewArchiveMember> list;
  for (const auto& [name, bytes] : members) {
    llvm::NewArchiveMember& member = list.emplace_back(llvm::MemoryBufferRef(bytes, name));
    member.MemberName = name;
    member.Perms = 0644;
  }
  const llvm::object::Archive::Kind kind =
      list.empty() ? llvm::object::Archive::K_GNU : list.front().detectKindFromObject();
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> archive =
      llvm::writeArchiveToBuffer(list, llvm::SymtabWritingMode::NormalSymtab, kind, true, false);
  BC_CHECK(static_cast<bool>(archive), "archive: {}", llvm::toString(archive.takeError()));
  return (*archive)->getBuffer().str();
}

}  // namespace backcast
