#include "ir/loop/words.h"

#include <algorithm>

#include "ir/loop/add.h"
#include "ir/loop/integer_fold.h"

namespace backcast::loop {

bool fits(const Literal& value, Scalar narrow) {
  if (!is_integer(value.element())) return false;
  if (value.element() == element_of(narrow)) return true;
  for (int64_t i = 0; i < value.element_count(); ++i) {
    if (value.as_int(i) != wrap(narrow, value.as_int(i))) return false;
  }
  return true;
}

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

BufferId add_words(Program& program, BufferId id, int64_t count) {
  Buffer words = program.buffer(id);
  words.element = ElementType::i32;
  words.shape.back() = Dim::floor_div(words.shape.back(), count);
  Buffer& whole = program.buffers[static_cast<size_t>(program.owner(id))];
  whole.alignment = std::max<int64_t>(whole.alignment, byte_size(ElementType::i32));
  words.view_of = id;
  words.view_offset = 0;
  const std::string wish = words.name + (count == 4 ? "_bytes" : "_pairs");
  return add_buffer(program, wish, std::move(words));
}

void hand_over_words(const Program& program, Kernel& kernel, Step& call, const std::string& name,
                     BufferId words) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    BufferParam& param = kernel.buffers[i];
    std::erase(param.over, name);
    if (param.name != name) continue;
    call.buffers[i] = words;
    param.element = scalar_of(program.buffer(words).element);
    param.shape = program.buffer(words).shape;
  }
}

bool sums_byte_products(const ExprNode& e) {
  return e.kind == ExprKind::reduce_lanes && e.op == Op::add &&
         e.args[0]->kind == ExprKind::binary && e.args[0]->op == Op::dot4_signed;
}

}  // namespace backcast::loop
