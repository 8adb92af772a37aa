// Control flow and memory of the interpreter's machine.
#include "ir/loop/machine.h"

#include <cstring>

#include "ir/graph/error.h"

namespace backcast::loop::machine {
namespace {

int64_t as_index(const Frame& f, int32_t slot) { return static_cast<int64_t>(f.slots[slot]); }

[[noreturn]] void out_of_bounds(const Frame& f, const Instruction* i, const char* action,
                                int64_t index, int64_t lanes) {
  const Array& array = f.arrays[i->array];
  const std::string span = lanes == 1 ? "" : fmt::format(" .. {}", index + lanes - 1);
  throw InternalError(fmt::format("kernel {}: {} of {}[{}{}], which has {} elements", *f.kernel,
                                  action, (*f.array_names)[static_cast<size_t>(i->array)], index,
                                  span, array.count));
}

/// The byte address of `lanes` elements from `index`.
template <int64_t kBytes>
std::byte* address(const Frame& f, const Instruction* i, const char* action, int64_t index,
                   int64_t lanes) {
  const Array& array = f.arrays[i->array];
  if (index < 0 || index > array.count - lanes) out_of_bounds(f, i, action, index, lanes);
  return array.data + index * kBytes;
}

template <int64_t kBytes, bool kGather>
const Instruction* run_load(Frame& f, const Instruction* i) {
  Slot* to = f.slots + i->to;
  if constexpr (kGather) {
    for (int32_t lane = 0; lane < i->lanes; ++lane) {
      std::memcpy(to + lane, address<kBytes>(f, i, "load", as_index(f, i->a + lane), 1), kBytes);
    }
  } else {
    const std::byte* from = address<kBytes>(f, i, "load", as_index(f, i->a) * i->number, i->lanes);
    for (int32_t lane = 0; lane < i->lanes; ++lane) {
      std::memcpy(to + lane, from + lane * kBytes, kBytes);
    }
  }
  return i + 1;
}

template <int64_t kBytes, bool kScatter>
const Instruction* run_store(Frame& f, const Instruction* i) {
  const Slot* from = f.slots + i->b;
  if constexpr (kScatter) {
    for (int32_t lane = 0; lane < i->lanes; ++lane) {
      std::memcpy(address<kBytes>(f, i, "store", as_index(f, i->a + lane), 1), from + lane, kBytes);
    }
  } else {
    std::byte* to = address<kBytes>(f, i, "store", as_index(f, i->a) * i->number, i->lanes);
    for (int32_t lane = 0; lane < i->lanes; ++lane) {
      std::memcpy(to + lane * kBytes, from + lane, kBytes);
    }
  }
  return i + 1;
}

// Uninitialised memory: far from any sensible number in every type.
constexpr int kGarbage = 0xfb;

}  // namespace

Run load_of(int64_t bytes, bool gather) {
  switch (bytes) {
    case 1:
      return gather ? run_load<1, true> : run_load<1, false>;
    case 2:
      return gather ? run_load<2, true> : run_load<2, false>;
    case 4:
      return gather ? run_load<4, true> : run_load<4, false>;
    default:
      return gather ? run_load<8, true> : run_load<8, false>;
  }
}

Run store_of(int64_t bytes, bool scatter) {
  switch (bytes) {
    case 1:
      return scatter ? run_store<1, true> : run_store<1, false>;
    case 2:
      return scatter ? run_store<2, true> : run_store<2, false>;
    case 4:
      return scatter ? run_store<4, true> : run_store<4, false>;
    default:
      return scatter ? run_store<8, true> : run_store<8, false>;
  }
}

const Instruction* run_select(Frame& f, const Instruction* i) {
  const Slot* condition = f.slots + i->a;
  for (int32_t lane = 0; lane < i->lanes; ++lane) {
    const bool chosen = (condition[lane] & 0xff) != 0;
    f.slots[i->to + lane] = f.slots[(chosen ? i->b : i->c) + lane];
  }
  return i + 1;
}

const Instruction* run_copy(Frame& f, const Instruction* i) {
  for (int32_t lane = 0; lane < i->lanes; ++lane) f.slots[i->to + lane] = f.slots[i->a + lane];
  return i + 1;
}

const Instruction* run_broadcast(Frame& f, const Instruction* i) {
  for (int32_t lane = 0; lane < i->lanes; ++lane) f.slots[i->to + lane] = f.slots[i->a];
  return i + 1;
}

const Instruction* run_shuffle(Frame& f, const Instruction* i) {
  for (int32_t lane = 0; lane < i->lanes; ++lane) {
    f.slots[i->to + lane] = f.slots[(*i->lane_slots)[static_cast<size_t>(lane)]];
  }
  return i + 1;
}

const Instruction* run_repack(Frame& f, const Instruction* i) {
  const int32_t from_bytes = i->b;
  const int32_t to_bytes = i->c;
  for (int32_t byte = 0; byte < i->lanes * to_bytes; ++byte) {
    const std::byte* from =
        reinterpret_cast<const std::byte*>(f.slots + i->a + byte / from_bytes) + byte % from_bytes;
    reinterpret_cast<std::byte*>(f.slots + i->to + byte / to_bytes)[byte % to_bytes] = *from;
  }
  return i + 1;
}

const Instruction* run_flatten(Frame& f, const Instruction* i) {
  const int64_t extent = as_index(f, i->b);
  const int64_t index = as_index(f, i->c);
  if (index < 0 || index >= extent) {
    throw InternalError(
        fmt::format("kernel {}: index {} of {} in dimension {}, which has {}", *f.kernel, index,
                    (*f.array_names)[static_cast<size_t>(i->array)], i->number, extent));
  }
  f.slots[i->to] = static_cast<Slot>(as_index(f, i->a) * extent + index);
  return i + 1;
}

const Instruction* run_allocate(Frame& f, const Instruction* i) {
  const int64_t count = as_index(f, i->a);
  int64_t bytes = 0;
  const bool fits = !__builtin_mul_overflow(count, i->number * i->lanes, &bytes) && count >= 0 &&
                    bytes <= (int64_t{1} << 32);
  if (!fits) {
    throw InternalError(fmt::format("kernel {}: allocation of {} elements for {}", *f.kernel, count,
                                    (*f.array_names)[static_cast<size_t>(i->array)]));
  }
  std::vector<std::byte>& local = (*f.locals)[static_cast<size_t>(i->array)];
  local.assign(static_cast<size_t>(bytes), std::byte{kGarbage});
  f.arrays[i->array] = {local.data(), count * i->lanes};
  return i + 1;
}

const Instruction* run_jump(Frame&, const Instruction* i) { return i + i->number; }

const Instruction* run_jump_unless(Frame& f, const Instruction* i) {
  return (f.slots[i->a] & 0xff) != 0 ? i + 1 : i + i->number;
}

const Instruction* run_enter_loop(Frame& f, const Instruction* i) {
  const int64_t begin = as_index(f, i->a);
  const int64_t extent = as_index(f, i->c);
  if (extent <= 0) return i + i->number;
  f.slots[i->to] = static_cast<Slot>(begin);
  f.slots[i->b] = static_cast<Slot>(begin) + static_cast<Slot>(extent);
  return i + 1;
}

const Instruction* run_next(Frame& f, const Instruction* i) {
  return ++f.slots[i->to] == f.slots[i->b] ? i + 1 : i + i->number;
}

const Instruction* run_end(Frame&, const Instruction*) { return nullptr; }

}  // namespace backcast::loop::machine
