#include "ir/loop/words.h"

#include <algorithm>

#include "ir/loop/add.h"

namespace backcast::loop {

bool lies_in_words(const Program& program, const Buffer& buffer, int64_t count) {
  if (buffer.kind != BufferClass::arena || buffer.shape.empty()) return false;
  if (!is_integer(buffer.element) || byte_size(buffer.element) * count != 4) return false;
  const Dim& last = buffer.shape.back();
  if (!last.is_constant() || last.constant() % count != 0) return false;
  for (const Buffer* at = &buffer; at->view_of >= 0; at = &program.buffer(at->view_of)) {
    if (!(Dim::floor_div(at->view_offset, count) * Dim(count) == at->view_offset)) return false;
  }
  return true;
}

BufferId add_words(Program& program, const std::string& wish, BufferId id, int64_t count) {
  Buffer words = program.buffer(id);
  words.element = ElementType::i32;
  words.shape.back() = Dim::floor_div(words.shape.back(), count);
  Buffer& whole = program.buffers[static_cast<size_t>(program.owner(id))];
  whole.alignment = std::max<int64_t>(whole.alignment, byte_size(ElementType::i32));
  words.view_of = id;
  words.view_offset = 0;
  return add_buffer(program, wish, std::move(words));
}

}  // namespace backcast::loop
