// See winograd.h. One walk over the steps; a layer's kernel is replaced where it is called.
#include "passes/lower/winograd.h"

#include <map>
#include <optional>
#include <set>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/words.h"
#include "passes/lower/definition_cost.h"
#include "passes/lower/winograd_choice.h"
#include "passes/lower/winograd_kernels.h"
#include "passes/lower/winograd_layer.h"
#include "passes/lower/winograd_weights.h"
#include "passes/plan/plan_memory.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Expr;
using loop::Kernel;
using loop::Program;
using loop::Step;

class Winograd {
 public:
  Winograd(const Program& program, const TargetInfo& target, WinogradMode mode,
           std::vector<WinogradLayer>* layers)
      : target_(target), mode_(mode), layers_(layers), result_(program) {}

  Program run() {
    if (mode_ == WinogradMode::off) return std::move(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](Step& step) { consider(step); });
    }
    loop::drop_uncalled(result_);
    return std::move(result_);
  }

 private:
  const Literal* weights_of(const Kernel& kernel, const Step& step, const std::string& name) const {
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      if (kernel.buffers[i].name != name) continue;
      const Buffer& buffer = result_.buffer(step.buffers[i]);
      const bool constant = buffer.kind == BufferClass::constant && buffer.view_of < 0;
      return constant ? &buffer.value : nullptr;
    }
    return nullptr;
  }

  void consider(Step& step) {
    const Kernel kernel = result_.kernels.at(step.kernel);
    std::optional<WinogradConv> conv = match_winograd(
        kernel, [&](const std::string& name) { return weights_of(kernel, step, name) != nullptr; });
    if (!conv || (conv->is_exact() && !read_in_words(*conv, kernel, step))) return;
    const WinogradWeights weights(*conv, kernel, *weights_of(kernel, step, conv->weights));
    WinogradLayer layer;
    layer.node = step.loc.node;
    layer.direct_cycles = layer.cycles = direct_cycles(*conv, target_);
    const std::optional<WinogradForm> form = choose(*conv, weights, layer);
    if (form) replace(step, kernel, *conv, weights, *form, layer);
    if (layers_) layers_->push_back(layer);
  }

  /// Bytes are transformed where nothing multiplies more than two of them at once: without vectors.
  /// Where words of two are multiplied, bytes must lie in words, and nothing else may read them.
  bool read_in_words(WinogradConv& conv, const Kernel& kernel, const Step& step) const {
    constexpr int64_t kBytes = 4;
    if (target_.vector_bits > 0) return false;
    if (!target_.pair_products) return true;
    const Buffer& input = result_.buffer(loop::buffer_of(kernel, step, conv.input));
    const Expr& last = conv.input_access->args.back();
    if (last->kind != loop::ExprKind::var || last->name != conv.channel) return false;
    if (reads_of(conv.definition, conv.input) != 1) return false;
    if (!loop::lies_in_words(result_, input, kBytes)) return false;
    conv.word = kBytes;
    return true;
  }

  bool use_fma() const { return target_.has_fma && target_.prefers_fma; }

  /// The form that is fastest among those within the bound; nothing: directly.
  std::optional<WinogradForm> choose(const WinogradConv& conv, const WinogradWeights& weights,
                                     WinogradLayer& layer) const {
    const bool automatic = mode_ == WinogradMode::automatic;
    if (automatic && !conv.channels_last && target_.vector_bits > 0) return std::nullopt;
    if (conv.is_exact() && !sums_fit(conv, weights)) return std::nullopt;
    std::optional<WinogradForm> best;
    for (const int m : {2, 4}) {
      if (mode_ == (m == 2 ? WinogradMode::f4 : WinogradMode::f2)) continue;
      if (m == 4 && conv.is_exact()) continue;  // its weights do not fit in 16 bits
      if (m == 4 && automatic && is_microcontroller(target_)) continue;
      const WinogradCandidate candidate = best_form(conv, m, target_);
      const bool faster = candidate.cycles < layer.cycles;
      if (!faster && (automatic || best)) continue;
      const WinogradError error = measure_error(conv, weights, m, use_fma());
      layer.direct_error = error.direct;
      if (error.transformed > kWinogradBound) continue;
      best = candidate.form;
      layer.tile = m;
      layer.error = error.transformed;
      layer.cycles = candidate.cycles;
    }
    return best;
  }

  BufferId add_planes(const std::string& wish, loop::Scalar scalar, const WinogradForm& form,
                      int64_t stride, const Loc& loc) {
    Buffer buffer;
    buffer.element = loop::element_of(scalar);
    buffer.shape = {Dim(form.frequencies()), Dim(stride)};
    buffer.alignment = target_.vector_bits / 8;
    buffer.loc = loc;
    return loop::add_buffer(result_, wish, std::move(buffer));
  }

  void replace(Step& step, const Kernel& kernel, const WinogradConv& conv,
               const WinogradWeights& weights, const WinogradForm& form, WinogradLayer& layer) {
    const bool guarded = mode_ == WinogradMode::automatic && is_microcontroller(target_);
    const int64_t arena = guarded ? plan_memory(result_, target_).arena_bytes : 0;
    const size_t buffers = result_.buffers.size();
    const Step before = step;
    rewrite(step, kernel, conv, weights, form, layer);
    if (!guarded || plan_memory(result_, target_).arena_bytes <= arena) return;
    step = before;
    result_.buffers.resize(buffers);
    layer.tile = 0;
    layer.cycles = layer.direct_cycles;
  }

  void rewrite(Step& step, Kernel kernel, const WinogradConv& conv, const WinogradWeights& weights,
               const WinogradForm& form, WinogradLayer& layer) {
    if (conv.word > 1) {
      const BufferId input = loop::buffer_of(kernel, step, conv.input);
      loop::hand_over_words(result_, kernel, step, conv.input,
                            loop::add_words(result_, input, conv.word));
    }
    Buffer filter;
    filter.kind = BufferClass::constant;
    filter.value = transformed_weights(conv, weights, form.m);
    filter.element = filter.value.element();
    filter.shape = filter.value.type().shape;
    filter.loc = step.loc;
    const std::string& name = kernel.name;
    std::map<std::string, BufferId> places;
    places[kFilter] = loop::add_buffer(result_, name + "_filter", std::move(filter));
    places[kSpectrum] =
        add_planes(name + "_spectrum", conv.spectrum(), form, form.input_stride, step.loc);
    places[kProducts] =
        add_planes(name + "_products", conv.scalar, form, form.output_stride, step.loc);
    layer.weight_bytes = result_.storage_bytes(places[kFilter]);
    layer.scratch_bytes =
        result_.storage_bytes(places[kSpectrum]) + result_.storage_bytes(places[kProducts]);
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      places[kernel.buffers[i].name] = step.buffers[i];
    }
    Kernel made = winograd_kernel(conv, kernel, form, use_fma());
    step.buffers.clear();
    for (const loop::BufferParam& param : made.buffers) {
      step.buffers.push_back(places.at(param.name));
    }
    step.kernel = loop::add_kernel(result_, name + "_winograd", std::move(made));
  }

  const TargetInfo& target_;
  WinogradMode mode_;
  std::vector<WinogradLayer>* layers_;
  Program result_;
};

}  // namespace

Program winograd(const Program& program, const TargetInfo& target, WinogradMode mode,
                 std::vector<WinogradLayer>* layers) {
  return Winograd(program, target, mode, layers).run();
}

}  // namespace backcast
