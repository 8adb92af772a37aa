// Programs of the text form: symbols, buffers with their constants, entry points.
#include <charconv>

#include "ir/graph/element_text.h"
#include "ir/graph/error.h"
#include "ir/loop/parser.h"

namespace backcast::loop {
namespace {

// Beyond these a text is damaged or hostile.
constexpr int64_t kMaxInline = 1 << 16;
constexpr int kMaxStepDepth = 64;

uint64_t read_u64(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

/// The constants of a side file by hash.
std::map<uint64_t, std::string_view> blocks_of(std::string_view bytes) {
  std::map<uint64_t, std::string_view> blocks;
  for (size_t at = 0; at < bytes.size();) {
    const bool has_head = bytes.size() - at >= 16;
    const uint64_t size = has_head ? read_u64(bytes, at + 8) : 0;
    if (!has_head || size > bytes.size() - at - 16) {
      throw CompileError(
          fmt::format("the file of constants is cut off in the entry at byte {}", at));
    }
    blocks[read_u64(bytes, at)] = bytes.substr(at + 16, size);
    at += 16 + size;
  }
  return blocks;
}

class ProgramParser {
 public:
  ProgramParser(std::string_view text, std::string_view constants)
      : in_(text), kernels_(in_), blocks_(blocks_of(constants)) {}

  Program run() {
    in_.expect("program");
    in_.expect("@");
    program_.name = in_.name();
    while (!in_.at_end()) {
      switch (kernels_.one_of({"symbol", "arena", "buffer", "function", "kernel", "entry", "state",
                               "training", "model"})) {
        case 0:
          symbol();
          break;
        case 1:
          arena();
          break;
        case 2:
          buffer();
          break;
        case 3:
          add(program_.functions, kernels_.function());
          break;
        case 4:
          add(program_.kernels, kernels_.kernel());
          break;
        case 5:
          program_.entries.push_back(entry());
          break;
        case 6:
          state();
          break;
        case 7:
          training();
          break;
        default:
          program_.model_hash = hash();
      }
    }
    // A view may be listed before its owner.
    for (const View& view : views_) {
      const auto found = ids_.find(view.owner);
      if (found == ids_.end()) in_.fail(view.at, "unknown buffer %" + view.owner);
      program_.buffers[view.buffer].view_of = found->second;
    }
    return std::move(program_);
  }

 private:
  template <class T>
  void add(std::map<std::string, T>& map, T value) {
    const std::string name = value.name;
    if (!map.emplace(name, std::move(value)).second) in_.fail("a second " + name + " before this");
  }

  void symbol() {
    const Token at = in_.peek();
    const std::string name = in_.name();
    DimRange range;
    in_.expect("in");
    range.min = in_.integer();
    in_.expect("..");
    if (in_.peek().kind == TokenKind::number || in_.next_is("-")) range.max = in_.integer();
    if (range.min > range.max) in_.fail(at, "the range of " + name + " is empty");
    if (!program_.symbols.emplace(name, range).second) in_.fail(at, "a second symbol " + name);
  }

  void arena() {
    program_.arena_bytes = in_.integer();
    in_.expect("bound");
    program_.arena_bound = in_.integer();
    in_.expect("align");
    program_.arena_alignment = in_.integer();
  }

  void state() {
    program_.state_bytes = in_.integer();
    in_.expect("align");
    program_.state_alignment = in_.integer();
  }

  void training() {
    in_.expect("batch");
    program_.batch = in_.integer();
    in_.expect("accumulate");
    program_.accumulate = in_.integer();
  }

  BufferId buffer_id() {
    const Token at = in_.peek();
    in_.expect("%");
    const std::string name = in_.name();
    const auto found = ids_.find(name);
    if (found == ids_.end()) in_.fail(at, "unknown buffer %" + name);
    return found->second;
  }

  std::vector<BufferId> buffer_ids() {
    std::vector<BufferId> result;
    in_.expect("(");
    if (in_.accept(")")) return result;
    do {
      result.push_back(buffer_id());
    } while (in_.accept(","));
    in_.expect(")");
    return result;
  }

  void buffer() {
    Buffer b;
    in_.expect("%");
    const Token at = in_.peek();
    b.name = in_.name();
    in_.expect(":");
    b.element = element_of(in_.scalar());
    b.shape = in_.dimensions("[", "]");
    b.kind = static_cast<BufferClass>(
        kernels_.one_of({"constant", "state", "input", "output", "arena"}));
    if (b.kind == BufferClass::state) {
      b.role = static_cast<StateRole>(kernels_.one_of(
          {"parameter", "statistic", "slot", "gradient", "step", "rate", "generator"}));
    }
    Type type;
    const bool typed = in_.next_is("[", 1) && type_from_text(in_.peek().spelling, type);
    if (typed || in_.next_is("{") || in_.peek().kind == TokenKind::hash) b.value = literal(b);
    if (in_.accept("align")) b.alignment = in_.integer();
    if (in_.accept("view")) {
      in_.expect("of");
      const Token owner = in_.peek();
      in_.expect("%");
      views_.push_back({owner, program_.buffers.size(), in_.name()});
      in_.expect("at");
      b.view_offset = in_.dimension();
    }
    if (in_.accept("offset")) b.offset = in_.integer();
    if (in_.accept("slice")) {
      b.slice_axis = static_cast<int32_t>(in_.integer());
      in_.expect("at");
      b.slice_start = in_.integer();
    }
    if (in_.accept("order")) {
      in_.expect("[");
      do {
        b.order.push_back(static_cast<int32_t>(in_.integer()));
      } while (in_.accept(","));
      in_.expect("]");
    }
    if (in_.accept("loc")) b.loc = in_.loc();
    if (!ids_.emplace(b.name, static_cast<BufferId>(program_.buffers.size())).second) {
      in_.fail(at, "a second buffer %" + b.name);
    }
    program_.buffers.push_back(std::move(b));
  }

  Literal literal(const Buffer& buffer) {
    const Token at = in_.peek();
    ElementType element = buffer.element;
    Dims shape = buffer.shape;
    if (in_.peek().kind == TokenKind::word) {
      element = element_of(in_.scalar());
      shape = in_.dimensions("[", "]");
    }
    std::vector<int64_t> extents;
    int64_t count = 1;
    for (const Dim& extent : shape) {
      if (!extent.is_constant() || extent.constant() < 0)
        in_.fail(at, "a constant of no fixed shape");
      extents.push_back(extent.constant());
      if (__builtin_mul_overflow(count, extents.back(), &count)) in_.fail(at, "a constant too big");
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(count, byte_size(element), &bytes))
      in_.fail(at, "a constant too big");
    if (in_.peek().kind == TokenKind::hash) return stored(element, extents, bytes);
    return spelled(element, extents, count);
  }

  uint64_t hash() {
    const Token at = in_.take();
    uint64_t value = 0;
    const char* end = at.spelling.data() + at.spelling.size();
    const bool starts = at.kind == TokenKind::hash && !at.spelling.empty();
    const std::from_chars_result read =
        std::from_chars(at.spelling.data() + (starts ? 1 : 0), end, value, 16);
    if (!starts || read.ec != std::errc() || read.ptr != end) {
      in_.fail(at, "expected # and hexadecimal digits");
    }
    return value;
  }

  Literal stored(ElementType element, const std::vector<int64_t>& shape, int64_t bytes) {
    const Token at = in_.peek();
    const uint64_t hash = this->hash();
    const auto block = blocks_.find(hash);
    if (block == blocks_.end()) {
      in_.fail(at, fmt::format("constant #{:016x} is not in the file of constants", hash));
    }
    if (block->second.size() != static_cast<size_t>(bytes)) {
      in_.fail(at, fmt::format("constant #{:016x} has {} bytes, not {}", hash, block->second.size(),
                               bytes));
    }
    const std::byte* first = reinterpret_cast<const std::byte*>(block->second.data());
    Literal value(element, shape, std::vector<std::byte>(first, first + bytes));
    if (value.hash() != hash) {
      in_.fail(at, fmt::format("the bytes of constant #{:016x} do not have this hash; the file of "
                               "constants is damaged",
                               hash));
    }
    return value;
  }

  Literal spelled(ElementType element, const std::vector<int64_t>& shape, int64_t count) {
    const Token at = in_.peek();
    in_.expect("{");
    if (count > kMaxInline) in_.fail(at, "a constant of this size needs the file of constants");
    const size_t size = static_cast<size_t>(byte_size(element));
    std::vector<std::byte> bytes(static_cast<size_t>(count) * size);
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) in_.expect(",");
      const Token value = in_.peek();
      std::string text = in_.accept("-") ? "-" : "";
      text += in_.take().spelling;
      if (in_.accept("(")) {
        text += "(" + std::string(in_.take().spelling) + ")";
        in_.expect(")");
      }
      const std::span<std::byte> to = std::span(bytes).subspan(static_cast<size_t>(i) * size, size);
      if (!element_from_text(element, text, to)) in_.fail(value, "no number of this type: " + text);
    }
    in_.expect("}");
    return Literal(element, shape, std::move(bytes));
  }

  EntryPoint entry() {
    EntryPoint entry;
    in_.expect("@");
    entry.name = in_.name();
    entry.inputs = buffer_ids();
    in_.expect("->");
    entry.outputs = buffer_ids();
    conditions(entry);
    entry.steps = steps(0);
    return entry;
  }

  void conditions(EntryPoint& entry) {
    while (!in_.next_is("{")) {
      const size_t word = kernels_.one_of({"range", "optional", "requires", "extent"});
      const BufferId id = buffer_id();
      if (word == 1) entry.optional_outputs.insert(id);
      if (word == 2) entry.required_count = id;
      if (word == 3) {
        in_.expect("of");
        entry.extents[id] = in_.name();
      }
      if (word != 0) continue;
      ValueRange& range = entry.ranges[id];
      in_.expect("in");
      range.min = in_.integer();
      in_.expect("..");
      range.max = in_.integer();
      if (in_.accept("ignore")) range.ignore = in_.integer();
    }
  }

  std::vector<Step> steps(int depth) {
    if (depth > kMaxStepDepth) in_.fail(in_.peek(), "steps are nested too deeply");
    std::vector<Step> list;
    in_.expect("{");
    while (!in_.accept("}")) list.push_back(step(depth));
    return list;
  }

  Step loop(int depth) {
    Step step;
    step.kind = StepKind::loop;
    step.symbol = in_.name();
    in_.expect("in");
    step.count = in_.dimension();
    step.buffers = {-1, -1};
    if (in_.accept("trips")) step.buffers[0] = buffer_id();
    if (in_.accept("while")) step.buffers[1] = buffer_id();
    step.reverse = in_.accept("reverse");
    if (in_.accept("loc")) step.loc = in_.loc();
    step.body = steps(depth + 1);
    return step;
  }

  Step branch(int depth) {
    Step step;
    step.kind = StepKind::branch;
    step.buffers = {buffer_id()};
    if (in_.accept("loc")) step.loc = in_.loc();
    step.body = steps(depth + 1);
    if (in_.accept("else")) step.otherwise = steps(depth + 1);
    return step;
  }

  Step step(int depth) {
    Step step;
    switch (kernels_.one_of({"call", "copy", "loop", "branch", "check_finite"})) {
      case 0:
        in_.expect("@");
        step.kernel = in_.name();
        step.buffers = buffer_ids();
        break;
      case 1:
        step.kind = StepKind::copy;
        step.buffers.push_back(buffer_id());
        in_.expect(",");
        step.buffers.push_back(buffer_id());
        break;
      case 2:
        return loop(depth);
      case 3:
        return branch(depth);
      default:
        step.kind = StepKind::check_finite;
        step.buffers.push_back(buffer_id());
    }
    if (in_.accept("sizes")) step.sizes = in_.dimensions("(", ")");
    if (in_.accept("grain")) step.grain = in_.integer();
    if (in_.accept("loc")) step.loc = in_.loc();
    return step;
  }

  TokenReader in_;
  KernelParser kernels_;
  std::map<uint64_t, std::string_view> blocks_;
  std::map<std::string, BufferId> ids_;
  struct View {
    Token at;
    size_t buffer = 0;
    std::string owner;
  };
  std::vector<View> views_;
  Program program_;
};

}  // namespace

Program parse_program(std::string_view text, std::string_view constants) {
  return ProgramParser(text, constants).run();
}

}  // namespace backcast::loop
