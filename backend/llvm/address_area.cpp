// See address_area.h.
#include "backend/llvm/address_area.h"

#include <llvm/Support/Memory.h>
#include <llvm/Support/Process.h>

namespace backcast {

size_t whole_pages(size_t bytes) {
  const size_t page = llvm::sys::Process::getPageSizeEstimate();
  return (bytes + page - 1) / page * page;
}

AddressArea::AddressArea(size_t bytes) {
  std::error_code error;
  const llvm::sys::MemoryBlock block = llvm::sys::Memory::allocateMappedMemory(
      whole_pages(bytes), nullptr, llvm::sys::Memory::MF_READ | llvm::sys::Memory::MF_WRITE, error);
  if (error) return;
  start_ = static_cast<std::byte*>(block.base());
  bytes_ = block.allocatedSize();
}

AddressArea::~AddressArea() {
  llvm::sys::MemoryBlock block(start_, bytes_);
  if (start_ != nullptr) llvm::sys::Memory::releaseMappedMemory(block);
}

std::byte* AddressArea::take(size_t bytes) {
  const size_t whole = whole_pages(bytes);
  if (start_ == nullptr || whole < bytes || whole > bytes_ - used_) return nullptr;
  std::byte* result = start_ + used_;
  used_ += whole;
  return result;
}

bool AddressArea::holds(const void* address) const {
  const std::byte* at = static_cast<const std::byte*>(address);
  return start_ != nullptr && at >= start_ && at < start_ + bytes_;
}

}  // namespace backcast
