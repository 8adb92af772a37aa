// See winograd.h. One walk over the steps; a layer's kernel is replaced where it is called.
#include "passes/winograd/winograd.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/words.h"
#include "passes/lower/definition_cost.h"
#include "passes/plan/plan_memory.h"
#include "passes/plan/rematerialize.h"
#include "passes/winograd/choice.h"
#include "passes/winograd/error.h"
#include "passes/winograd/gradient.h"
#include "passes/winograd/kernels.h"
#include "passes/winograd/layer.h"
#include "passes/winograd/weights.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferId;
using loop::Expr;
using loop::Kernel;
using loop::Program;
using loop::Step;

class Winograd {
 public:
  Winograd(const Program& program, const TargetInfo& target, const WinogradOptions& options,
           WinogradNotes& notes)
      : target_(target),
        mode_(options.mode),
        threads_(target.parallel_grain > 0 ? options.threads : 1),
        notes_(notes),
        result_(program) {
    if (!is_automatic() || !target.is_microcontroller()) return;
    notes.room = options.room ? *options.room : arena();
  }

  Program run() {
    if (mode_ == WinogradMode::off) return std::move(result_);
    for (loop::EntryPoint& entry : result_.entries) walk(entry.steps);
    loop::drop_uncalled(result_);
    return std::move(result_);
  }

 private:
  WinogradWeights weights_of(const WinogradConv& conv, const Kernel& kernel,
                             const Step& step) const {
    if (conv.of == WinogradOf::weights) return {};
    if (!conv.constant_weights) return WinogradWeights(conv);
    const Buffer& buffer = result_.buffer(loop::buffer_of(kernel, step, conv.factor));
    return WinogradWeights(conv, kernel, buffer.value);
  }

  void walk(std::vector<Step>& steps) {
    for (size_t i = 0; i < steps.size(); ++i) {
      walk(steps[i].body);
      walk(steps[i].otherwise);
      if (steps[i].kind == loop::StepKind::call) i += consider(steps, i);
    }
  }

  /// Returns how many steps now stand before the call.
  size_t consider(std::vector<Step>& steps, size_t at) {
    const Step& step = steps[at];
    const Kernel kernel = result_.kernels.at(step.kernel);
    std::optional<WinogradConv> conv = match_winograd(kernel, [&](const std::string& name) {
      return loop::passes_constant(result_, kernel, step, name);
    });
    if (!conv || (conv->is_exact() && !read_in_words(*conv, kernel, step))) return 0;
    const WinogradWeights weights = weights_of(*conv, kernel, step);
    WinogradLayer layer;
    layer.node = step.loc.node;
    layer.direct_cycles = layer.cycles = direct_cycles(*conv, threads_, target_);
    const size_t before = steps.size();
    for (Choice& choice : choose(*conv, weights, layer)) {
      if (!replace(steps, at, kernel, *conv, weights, choice)) continue;
      layer = choice.layer;
      break;
    }
    notes_.layers.push_back(layer);
    return steps.size() - before;
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

  struct Choice {
    WinogradForm form;
    WinogradLayer layer;
  };

  /// Forms within the bound, the fastest first; nothing: directly. `direct` learns its error.
  std::vector<Choice> choose(const WinogradConv& conv, const WinogradWeights& weights,
                             WinogradLayer& direct) const {
    if (is_automatic() && !conv.channels_last && target_.vector_bits > 0) return {};
    if (conv.is_exact() && !sums_fit(conv, weights)) return {};
    std::vector<Choice> choices;
    for (const int m : {2, 4}) {
      if (mode_ == (m == 2 ? WinogradMode::f4 : WinogradMode::f2)) continue;
      if (m == 4 && conv.is_exact()) continue;  // its weights do not fit in 16 bits
      // Fourfold weights take too much flash; in the arena, which must not grow, they are welcome.
      const bool frugal = is_automatic() && target_.is_microcontroller() && conv.constant_weights;
      if (m == 4 && frugal) continue;
      const WinogradCandidate candidate = best_form(conv, m, threads_, target_);
      if (is_automatic() && candidate.cycles >= direct.cycles) continue;
      const WinogradError error = measure_error(conv, weights, m, target_.uses_fma());
      direct.direct_error = error.direct;
      if (error.transformed > kWinogradBound) continue;
      Choice choice{candidate.form, direct};
      choice.layer.tile = m;
      choice.layer.error = error.transformed;
      choice.layer.cycles = candidate.cycles;
      choices.push_back(std::move(choice));
    }
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return a.layer.cycles < b.layer.cycles;
    });
    return choices;
  }

  bool is_automatic() const { return mode_ == WinogradMode::automatic; }
  /// Training computes again what costs little.
  int64_t arena() const {
    return plan_memory(rematerialize(result_, target_), target_).arena_bytes;
  }

  /// False, with nothing changed, where there is no room for it.
  bool replace(std::vector<Step>& steps, size_t at, const Kernel& kernel, const WinogradConv& conv,
               const WinogradWeights& weights, Choice& choice) {
    const bool guarded = notes_.room > 0;
    const size_t buffers = result_.buffers.size();
    const std::vector<Step> before = guarded ? steps : std::vector<Step>();
    if (conv.of == WinogradOf::result) {
      rewrite(steps, at, kernel, conv, weights, choice.form, choice.layer);
    } else {
      rewrite_gradient(steps, at, kernel, conv, choice.form, choice.layer);
    }
    if (!guarded || arena() <= notes_.room) return true;
    steps = before;
    result_.buffers.resize(buffers);
    return false;
  }

  void rewrite(std::vector<Step>& steps, size_t at, Kernel kernel, const WinogradConv& conv,
               const WinogradWeights& weights, const WinogradForm& form, WinogradLayer& layer) {
    Step& step = steps[at];
    if (conv.word > 1) {
      const BufferId input = loop::buffer_of(kernel, step, conv.input);
      loop::hand_over_words(result_, kernel, step, conv.input,
                            loop::add_words(result_, input, conv.word));
    }
    const std::string name = kernel.name;
    Kernel made = winograd_kernel(conv, kernel, form, target_.uses_fma());
    Places places = places_of(kernel, step);
    places[kFilter] = conv.constant_weights
                          ? loop::add_constant(result_, name + "_filter",
                                               transformed_weights(conv, weights, form.m), step.loc)
                          : add_scratch(name + "_filter", made, kFilter, step.loc);
    places[kSpectrum] = add_scratch(name + "_spectrum", made, kSpectrum, step.loc);
    places[kProducts] = add_scratch(name + "_products", made, kProducts, step.loc);
    layer.weight_bytes = result_.storage_bytes(places[kFilter]);
    layer.scratch_bytes =
        result_.storage_bytes(places[kSpectrum]) + result_.storage_bytes(places[kProducts]);
    step = call_of(name + "_winograd", std::move(made), places, step);
    if (conv.constant_weights) return;
    Kernel transform = weight_kernel(conv, kernel, form, target_.uses_fma());
    Step before = call_of(name + "_filter", std::move(transform), places, step);
    before.sizes.clear();
    steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at), std::move(before));
  }

  /// The sums become a step of their own, before what is left of the layer's.
  void rewrite_gradient(std::vector<Step>& steps, size_t at, Kernel kernel,
                        const WinogradConv& conv, const WinogradForm& form, WinogradLayer& layer) {
    Step& step = steps[at];
    const std::string name = kernel.name;
    Kernel made = gradient_sums_kernel(conv, kernel, form, target_.uses_fma());
    Places places = places_of(kernel, step);
    places[kSums] = add_scratch(name + "_sums", made, kSums, step.loc);
    places[kSpectrum] = add_scratch(name + "_spectrum", made, kSpectrum, step.loc);
    places[kGradientSpectrum] = add_scratch(name + "_gradients", made, kGradientSpectrum, step.loc);
    layer.weight_bytes = result_.storage_bytes(places[kSums]);
    layer.scratch_bytes =
        result_.storage_bytes(places[kSpectrum]) + result_.storage_bytes(places[kGradientSpectrum]);
    Step sums = call_of(name + "_sums", std::move(made), places, step);

    kernel.body = loop::define(gradient_definition(conv, form.m, target_.uses_fma()));
    kernel.macs = 0;  // they are those of the sums
    kernel.buffers.insert(kernel.buffers.begin(),
                          matrices_param(kSums, conv, form, loop::AccessMode::read));
    step = call_of(name + "_winograd", std::move(kernel), places, step);
    loop::drop_unread(result_.kernels.at(step.kernel), step);
    steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at), std::move(sums));
  }

  /// What a call hands to the kernel's parameters.
  using Places = std::map<std::string, BufferId>;
  static Places places_of(const Kernel& kernel, const Step& step) {
    Places places;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      places[kernel.buffers[i].name] = step.buffers[i];
    }
    return places;
  }

  /// A call of the kernel, which is added to the program, in place of `step`.
  Step call_of(const std::string& wish, Kernel kernel, const Places& places, const Step& step) {
    Step call = step;
    call.buffers.clear();
    for (const loop::BufferParam& param : kernel.buffers) {
      call.buffers.push_back(places.at(param.name));
    }
    call.kernel = loop::add_kernel(result_, wish, std::move(kernel));
    return call;
  }

  /// A buffer of the arena for a parameter.
  BufferId add_scratch(const std::string& wish, const Kernel& kernel, const char* param,
                       const Loc& loc) {
    const loop::BufferParam& like = *kernel.find(param);
    Buffer buffer;
    buffer.element = loop::element_of(like.element);
    buffer.shape = like.shape;
    buffer.alignment = target_.vector_bits / 8;
    buffer.loc = loc;
    return loop::add_buffer(result_, wish, std::move(buffer));
  }

  const TargetInfo& target_;
  WinogradMode mode_;
  int64_t threads_;
  WinogradNotes& notes_;
  Program result_;
};

}  // namespace

Program winograd(const Program& program, const TargetInfo& target, const WinogradOptions& options,
                 WinogradNotes* notes) {
  WinogradNotes ignored;
  return Winograd(program, target, options, notes ? *notes : ignored).run();
}

}  // namespace backcast
