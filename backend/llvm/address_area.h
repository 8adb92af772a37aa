// One piece of address space for all sections of an object that runs in this process: code reaches
// constants by 32 bits relative to itself, and sections that are mapped one by one may lie further
// apart than that once the constants are large.
#pragma once

#include <cstddef>

namespace backcast {

class AddressArea {
 public:
  /// Asks the system for `bytes` bytes that can be read and written; empty when it has none.
  explicit AddressArea(size_t bytes);
  ~AddressArea();
  AddressArea(const AddressArea&) = delete;
  AddressArea& operator=(const AddressArea&) = delete;

  /// The next `bytes` bytes, rounded up to whole pages; null when that many are not left.
  std::byte* take(size_t bytes);
  bool holds(const void* address) const;

 private:
  std::byte* start_ = nullptr;
  size_t bytes_ = 0, used_ = 0;
};

/// `bytes` rounded up to whole pages.
size_t whole_pages(size_t bytes);

}  // namespace backcast
