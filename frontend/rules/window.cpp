// The geometry that convolutions and pooling share: kernel, strides, pads, auto_pad, ceil_mode.
#include <algorithm>

#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

Ints spatial_ints(const NodeContext& n, std::string_view name, size_t rank, int64_t least) {
  Ints values = n.attr_ints(name).value_or(Ints(rank, 1));
  if (values.size() != rank) {
    n.fail(fmt::format("attribute \"{}\" has {} values and needs {}", name, values.size(), rank));
  }
  for (const int64_t value : values) {
    if (value < least || value > INT32_MAX) {
      n.fail(fmt::format("attribute \"{}\" has the value {}, outside of {} to {}", name, value,
                         least, INT32_MAX));
    }
  }
  return values;
}

/// Padding that makes the output ceil(input / stride) long; SAME_UPPER puts the odd one at the end.
void pad_same(Window& w, size_t i, const Dim& input, int64_t span, bool upper) {
  const Dim output = Dim::ceil_div(input, w.strides[i]);
  const Dim missing = (output - 1) * w.strides[i] + span - input;
  const Dim total =
      missing.is_constant() ? Dim(std::max<int64_t>(0, missing.constant())) : Dim::max(missing, 0);
  const Dim half = Dim::floor_div(total, 2);
  w.pad_low[i] = upper ? half : total - half;
  w.pad_high[i] = upper ? total - half : half;
}

}  // namespace

Window window_of(const NodeContext& n, const Shape& input, std::optional<Ints> kernel) {
  if (input.size() < 3) {
    n.fail(fmt::format("needs an input of rank 3 or more, [N, C, spatial…], and has {}",
                       to_string(input)));
  }
  const size_t rank = input.size() - 2;
  Window w;
  if (!kernel && !n.has_attr("kernel_shape")) n.fail("attribute \"kernel_shape\" is missing");
  w.kernel = n.has_attr("kernel_shape") ? spatial_ints(n, "kernel_shape", rank, 1) : *kernel;
  if (kernel && *kernel != w.kernel) {
    n.fail("attribute \"kernel_shape\" differs from the extents of the weights");
  }
  w.strides = spatial_ints(n, "strides", rank, 1);
  w.dilations = spatial_ints(n, "dilations", rank, 1);
  w.pad_low.assign(rank, Dim(0));
  w.pad_high.assign(rank, Dim(0));
  const std::string auto_pad = n.attr_string("auto_pad", "NOTSET");
  const Ints pads = n.attr_ints("pads").value_or(Ints(rank * 2, 0));
  if (pads.size() != rank * 2) {
    n.fail(fmt::format("attribute \"pads\" has {} values and needs {}", pads.size(), rank * 2));
  }
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID") {
    n.fail(
        fmt::format("attribute \"auto_pad\" is \"{}\"; NOTSET, VALID, SAME_UPPER and SAME_LOWER "
                    "are possible",
                    auto_pad));
  }
  const bool ceil_mode = n.attr_int("ceil_mode", 0) != 0;
  for (size_t i = 0; i < rank; ++i) {
    const Dim& extent = input[i + 2];
    const int64_t span = (w.kernel[i] - 1) * w.dilations[i] + 1;
    if (same) {
      pad_same(w, i, extent, span, auto_pad == "SAME_UPPER");
    } else if (auto_pad == "NOTSET") {
      if (pads[i] < 0 || pads[i + rank] < 0 || std::max(pads[i], pads[i + rank]) > INT32_MAX) {
        n.fail(fmt::format("attribute \"pads\" has the values {} and {}, outside of 0 to {}",
                           pads[i], pads[i + rank], INT32_MAX));
      }
      w.pad_low[i] = pads[i];
      w.pad_high[i] = pads[i + rank];
    }
    const Dim room = extent + w.pad_low[i] + w.pad_high[i] - span;
    if (room.is_constant() && room.constant() < 0) {
      n.fail(
          fmt::format("the window of {} elements is longer than the padded input of {} along "
                      "spatial axis {}; enlarge the input or the pads",
                      span, (extent + w.pad_low[i] + w.pad_high[i]).to_string(), i));
    }
    Dim output = Dim::floor_div(room, w.strides[i]) + 1;
    if (ceil_mode && !same) {
      output = Dim::ceil_div(room, w.strides[i]) + 1;
      // The last window has to start inside the input or its left padding.
      const Dim beyond = (output - 1) * w.strides[i] - extent - w.pad_low[i];
      if (beyond.is_constant() && beyond.constant() >= 0) output = output - 1;
    }
    w.output.push_back(output);
    const Dim needed = (output - 1) * w.strides[i] + span - extent - w.pad_low[i];
    const bool longer = ceil_mode && needed.is_constant() && w.pad_high[i].is_constant() &&
                        needed.constant() > w.pad_high[i].constant();
    w.high.push_back(longer ? needed : w.pad_high[i]);
  }
  return w;
}

}  // namespace backcast
