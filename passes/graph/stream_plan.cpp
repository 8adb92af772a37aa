// See stream_plan.h. Two walks forwards: the first finds what comes in pieces and how many
// positions of each value there are per call, the second, knowing these, when each position is
// there.
#include "passes/graph/stream_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/graph/dim_math.h"
#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "passes/graph/constant_value.h"
#include "passes/graph/stream_source.h"
#include "passes/train/copy_nodes.h"

namespace backcast {
namespace {

using Kind = OperandPieces::Kind;

int64_t ceil_div(int64_t a, int64_t b) { return -math::floor_div(-a, b); }

class StreamPlanner {
 public:
  StreamPlanner(const Module& module, const Function& function, const StreamOptions& options)
      : module_(module), from_(function), options_(options) {
    plan_.nodes.resize(static_cast<size_t>(from_.size()));
  }

  StreamPlan run() {
    const std::vector<char> needed = needed_nodes(from_, {from_.result});
    for (int32_t i = 0; i < from_.size(); ++i) {
      of(ValueId(i)).needed =
          needed[static_cast<size_t>(i)] || is_parameter(from_.node(ValueId(i)));
      if (of(ValueId(i)).needed) classify(ValueId(i));
    }
    choose_hop();
    for (int32_t i = 0; i < from_.size(); ++i) {
      if (of(ValueId(i)).needed) place(ValueId(i));
    }
    place_stretches();
    for (const Flow& result : of(from_.result).flows) {
      if (result.kind == Flow::Kind::pieces && result.extent == 1) check_edges(result);
    }
    choose_places();
    name_states();
    return std::move(plan_);
  }

 private:
  struct Stretch {  // all positions of an operand, as a node reads them in every call
    ValueId node;
    size_t operand;
  };

  StreamedNode& of(ValueId id) { return plan_.nodes[static_cast<size_t>(id.index)]; }
  Flow& flow(ValueId id) { return of(id).flows[0]; }

  // What comes in pieces.

  void classify(ValueId id) {
    const Node& node = from_.node(id);
    StreamedNode& here = of(id);
    if (node.op == &ops::parameter) return classify_input(id);
    if (node.op == &ops::tuple) {
      for (const ValueId operand : node.operands) here.flows.push_back(flow(operand));
      return;
    }
    if (node.op == &ops::get) {
      const auto element = static_cast<size_t>(node.attrs.as<GetAttrs>().index);
      here.flows = {of(node.operands[0]).flows[element]};
      return;
    }
    const size_t results = node.type.is_tensor() ? 1 : node.type.elements().size();
    here.flows.resize(results);
    if (reads(node, Flow::Kind::pieces) && try_pieces(id)) return;
    const bool streamed = reads(node, Flow::Kind::pieces) || reads(node, Flow::Kind::latest);
    for (Flow& result : here.flows) {
      result.kind = streamed ? Flow::Kind::latest : Flow::Kind::apart;
    }
    for (size_t k = 0; k < node.operands.size(); ++k) {
      if (flow(node.operands[k]).kind == Flow::Kind::pieces) stretches_.push_back({id, k});
    }
  }

  void classify_input(ValueId id) {
    Flow& input = of(id).flows.emplace_back();
    const std::string name = parameter_name(from_.node(id));
    const TensorType& type = from_.type(id).tensor();
    for (const StreamInput& streamed : options_.inputs) {
      if (streamed.name != name) continue;
      input.kind = Flow::Kind::pieces;
      input.axis = streamed.axis;
      input.extent = type.shape[static_cast<size_t>(streamed.axis)].constant();
      input.clean_to = input.extent;
      if (first_extent_ == 0 || name == options_.inputs[0].name) first_extent_ = input.extent;
      input.rate_up = input.extent;  // choose_hop divides it by the first input's
    }
  }

  bool reads(const Node& node, Flow::Kind kind) {
    return std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
      const std::vector<Flow>& flows = of(operand).flows;
      return std::any_of(flows.begin(), flows.end(),
                         [&](const Flow& flow) { return flow.kind == kind; });
    });
  }

  PiecesContext context(const Node& node, std::vector<int64_t>& axes) {
    for (const ValueId operand : node.operands) {
      axes.push_back(flow(operand).kind == Flow::Kind::pieces ? flow(operand).axis : -1);
    }
    return {from_, node, axes};
  }

  /// Whether the node can be computed by pieces; sets its flows but for when they are there.
  bool try_pieces(ValueId id) {
    const Node& node = from_.node(id);
    StreamedNode& here = of(id);
    if (reads(node, Flow::Kind::latest)) return false;
    std::vector<int64_t> axes;
    std::optional<Pieces> pieces = pieces_of(context(node, axes));
    if (!pieces) return false;
    std::optional<Flow> rate;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const OperandPieces& operand = pieces->operands[k];
      const ValueId value = node.operands[k];
      if (operand.kind == Kind::same && !is_same_along(module_, from_, value, operand.axis)) {
        return false;
      }
      if (operand.kind != Kind::pieces) continue;
      Flow result;
      const int64_t up = flow(value).rate_up * operand.reach.dilation;
      const int64_t down = flow(value).rate_down * operand.reach.stride;
      result.rate_up = up / std::gcd(up, down);
      result.rate_down = down / std::gcd(up, down);
      if (rate && (rate->rate_up != result.rate_up || rate->rate_down != result.rate_down)) {
        return false;
      }
      rate = result;
    }
    for (const Carried& carried : pieces->carried) {
      if (!is_made_of_constants(from_, node.operands[carried.operand])) return false;
      here.carried_initial.push_back(
          constant_value(module_, from_, node.operands[carried.operand]).tensor);
    }
    for (size_t i = 0; i < here.flows.size(); ++i) {
      Flow& result = here.flows[i] = *rate;
      result.kind = pieces->axes[i] < 0 ? Flow::Kind::latest : Flow::Kind::pieces;
      result.axis = pieces->axes[i];
      const Type& type = node.type.is_tensor() ? node.type : node.type.elements()[i];
      if (result.axis < 0) continue;
      result.extent = type.tensor().shape[static_cast<size_t>(result.axis)].constant();
    }
    here.pieces = std::move(pieces);
    return true;
  }

  /// Every value gets a whole number of positions per call.
  void choose_hop() {
    int64_t unit = 1;
    const Loc* asks = nullptr;
    for (int32_t i = 0; i < from_.size(); ++i) {
      for (const Flow& flow : of(ValueId(i)).flows) {
        if (flow.kind == Flow::Kind::apart || flow.axis < 0) continue;
        const int64_t down =
            flow.rate_down * first_extent_ / std::gcd(flow.rate_up, flow.rate_down * first_extent_);
        const int64_t both = math::multiply(unit / std::gcd(unit, down), down);
        if (both != unit) asks = &from_.node(ValueId(i)).loc;
        unit = both;
      }
    }
    const int64_t hop = hop_ = options_.hop.value_or(unit);
    if (hop < 1 || hop % unit != 0) {
      throw CompileError(*(asks ? asks : &from_.node(from_.result).loc),
                         fmt::format("a stream of {} positions of \"{}\" per call would leave it "
                                     "between two positions; choose a multiple of {}",
                                     hop, options_.inputs[0].name, unit));
    }
    for (StreamedNode& node : plan_.nodes) {
      for (Flow& flow : node.flows) {
        if (flow.kind == Flow::Kind::apart) continue;
        flow.count = math::multiply(hop, flow.rate_up) / flow.rate_down / first_extent_;
      }
    }
  }

  // When its positions are there.

  void place(ValueId id) {
    const Node& node = from_.node(id);
    StreamedNode& here = of(id);
    if (node.op == &ops::tuple) {
      for (size_t k = 0; k < node.operands.size(); ++k) here.flows[k] = flow(node.operands[k]);
      return;
    }
    if (node.op == &ops::get) {
      const auto element = static_cast<size_t>(node.attrs.as<GetAttrs>().index);
      const StreamedNode& whole = of(node.operands[0]);
      here.flows = {whole.flows[element]};
      if (whole.pieces && flow(id).axis < 0) ends_.push_back({&node.loc, flow(id)});
      return;
    }
    if (!here.pieces) return;
    const int64_t count = here.flows[0].count;
    int64_t delay = 0, length = 0;
    std::optional<Literal> front;
    each_piece(id, [&](const OperandPieces& operand, size_t k, const Flow& from) {
      const Reach& reach = operand.reach;
      const int64_t last = reach.reach - 1 - reach.before + reach.dilation * from.delay;
      delay = std::max(delay, math::floor_div(last, reach.stride));
      length = from.extent;
      // What is in front needs nobody's time.
      if (last >= 0 || is_output(id)) return;
      const bool fills = operand.fills && operand.padding && reach.dilation == 1;
      if (fills) {
        front = operand.padding;
        delay = std::min<int64_t>(0, last - std::min<int64_t>(0, from.delay));
      } else if (reach == Reach{} && from.front) {
        front = made_of(module_, from_, id, node.operands[k], *from.front);
        if (front) delay = last;
      }
    });
    if (!here.pieces->carried.empty()) {
      delay = ceil_div(delay, count) * count;  // what is carried starts at the beginning of a piece
      count_calls(delay / count + 1);
    }
    for (Flow& result : here.flows) {
      result.delay = delay;
      result.front = front;
      if (result.axis < 0) result.extent = length;
      result.clean_to = result.extent;
      if (!here.pieces->carried.empty()) result.clean_from = result.extent, result.edge = node.loc;
    }
    each_piece(id, [&](const OperandPieces& operand, size_t k, const Flow& from) {
      read_piece(id, operand, k, from);
      for (Flow& result : here.flows) keep_clean(result, operand.reach, from, node.loc);
    });
  }

  /// Outputs begin with their first position.
  bool is_output(ValueId id) const {
    const std::vector<ValueId>& results = from_.node(from_.result).operands;
    return id == from_.result || std::find(results.begin(), results.end(), id) != results.end();
  }

  template <class F>
  void each_piece(ValueId id, const F& visit) {
    const Node& node = from_.node(id);
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const OperandPieces& operand = of(id).pieces->operands[k];
      if (operand.kind == Kind::pieces) visit(operand, k, flow(node.operands[k]));
    }
  }

  void read_piece(ValueId id, const OperandPieces& operand, size_t k, const Flow& from) {
    StreamedNode& here = of(id);
    const Reach& reach = operand.reach;
    const Flow& result = here.flows[0];
    const int64_t start = reach.dilation * from.delay - reach.before - result.delay * reach.stride;
    const int64_t span = (result.count - 1) * reach.stride + reach.reach;
    const int64_t first = math::floor_div(start, reach.dilation);
    const int64_t last = math::floor_div(start + span - 1, reach.dilation);
    BC_CHECK(last < from.count, "a piece of {} reads what is to come", here.flows.size());
    here.extents.operand = last - first + 1;
    here.extents.result = result.count;
    here.extents.pad_low = first * reach.dilation - start;
    here.extents.pad_high = span - (last - first) * reach.dilation - 1 - here.extents.pad_low;
    add_read(id, k, from, first, here.extents.operand, operand.padding);
  }

  static void keep_clean(Flow& result, const Reach& reach, const Flow& from, const Loc& loc) {
    const int64_t low = from.clean_from * reach.dilation + reach.before;
    const int64_t high = from.clean_to * reach.dilation - reach.reach + reach.before;
    const int64_t clean_from = std::clamp<int64_t>(ceil_div(low, reach.stride), 0, result.extent);
    const int64_t clean_to =
        std::clamp<int64_t>(math::floor_div(high, reach.stride) + 1, 0, result.extent);
    const bool was = from.clean_from == 0 && from.clean_to == from.extent;
    const bool is = clean_from == 0 && clean_to == result.extent;
    if (result.edge.empty()) result.edge = !was ? from.edge : is ? Loc{} : loc;
    result.clean_from = std::max(result.clean_from, clean_from);
    result.clean_to = std::min(result.clean_to, clean_to);
  }

  /// The latest stretches, which have to be of one and the same stretch of the sequence: where they
  /// begin is counted in calls, in steps of the largest part of a call that is a whole number of
  /// positions of all.
  void place_stretches() {
    if (stretches_.empty() && ends_.empty()) return;
    if (options_.endless) {
      for (const auto& [loc, end] : ends_) check_edges(end);
      if (stretches_.empty()) return;
      throw CompileError(from_.node(stretches_[0].node).loc,
                         "it needs all of the sequence, and that has no length in the model; say "
                         "with --dim how long a stretch its results are about");
    }
    int64_t parts = 0;
    for (const StreamedNode& node : plan_.nodes) {
      for (const Flow& flow : node.flows) {
        if (flow.kind == Flow::Kind::pieces) parts = std::gcd(parts, flow.count);
      }
    }
    int64_t most = 0;
    const auto length = [&](const Flow& flow) {
      return ceil_div((flow.delay + flow.extent) * parts, flow.count);
    };
    for (const Stretch& stretch : stretches_) most = std::max(most, length(read_by(stretch)));
    for (const auto& [loc, end] : ends_) most = std::max(most, length(end));
    for (const Stretch& stretch : stretches_) {
      const Flow flow = read_by(stretch);
      check_edges(flow);
      const int64_t begin = flow.count - most * flow.count / parts + flow.delay;
      add_read(stretch.node, stretch.operand, flow, begin, flow.extent, std::nullopt);
    }
    for (const auto& [loc, end] : ends_) {
      check_edges(end);
      if (most * end.count == (end.delay + end.extent) * parts) continue;
      throw CompileError(*loc,
                         "its last state would have to wait for other layers, which a stream does "
                         "not do; stream what is in front of it, or leave that output out");
    }
    plan_.first_call = ceil_div(most, parts);
    plan_.stretch = most * hop_ / parts;
  }

  const Flow& read_by(const Stretch& stretch) {
    return flow(from_.node(stretch.node).operands[stretch.operand]);
  }

  void check_edges(const Flow& flow) {
    // What has no length of its own is about all there has been.
    const bool begins = flow.clean_from == 0 || options_.endless;
    const bool clean = begins && flow.clean_to == flow.extent;
    plan_.exact = plan_.exact && clean;
    if (clean || options_.edges == StreamEdges::open) return;
    throw CompileError(
        flow.edge,
        fmt::format("it treats the sequence's {} apart (padding, a state of rest), where a stream "
                    "goes on: results for the latest {} positions would not be the model's; "
                    "--stream-edges open: accept that",
                    flow.clean_to < flow.extent ? "end" : "beginning", first_extent_));
  }

  void add_read(ValueId id, size_t operand, const Flow& from, int64_t first, int64_t count,
                const std::optional<Literal>& padding) {
    const ValueId value = from_.node(id).operands[operand];
    PieceRead& read = of(id).reads[operand];
    read.first = first;
    read.count = count;
    const bool masked = padding && from.delay > 0;
    if (first >= 0 && !masked) return;
    if (masked) count_calls(ceil_div(from.delay, from.count));
    StreamSource source = smallest_source(module_, from_, value, padding, [&](ValueId v) {
      return of(v).flows.size() == 1 && flow(v).kind == Flow::Kind::pieces &&
             flow(v).delay == from.delay;
    });
    read.again = std::move(source.again);
    const auto like = [&](const Past& past) {
      return past.value == source.value && past.masked == masked && past.initial == source.initial;
    };
    auto found = std::find_if(plan_.pasts.begin(), plan_.pasts.end(), like);
    if (found == plan_.pasts.end()) {
      plan_.pasts.push_back({source.value, 0, masked, source.initial});
      found = plan_.pasts.end() - 1;
    }
    found->depth = std::max(found->depth, -first);
    read.past = static_cast<int>(found - plan_.pasts.begin());
  }

  void count_calls(int64_t calls) { plan_.counted_calls = std::max(plan_.counted_calls, calls); }

  /// Former positions are copied beside the present piece where they are read, unless that piece is
  /// kept with them. Keeping it takes room of its own, the copies of all others share theirs: the
  /// largest ones are kept that way, as many as take the least in all.
  void choose_places() {
    std::vector<std::pair<int64_t, size_t>> sizes;  // of a copy
    const auto row = [&](const Past& past) {
      const TensorType& type = from_.type(past.value).tensor();
      const int64_t elements =
          type.element_count().constant() / std::max<int64_t>(flow(past.value).extent, 1);
      return elements * byte_size(type.element);
    };
    for (size_t i = 0; i < plan_.pasts.size(); ++i) {
      const Past& past = plan_.pasts[i];
      if (past.depth > 0) sizes.push_back({(past.depth + flow(past.value).count) * row(past), i});
    }
    std::sort(sizes.rbegin(), sizes.rend());
    int64_t kept = 0, least = sizes.empty() ? 0 : sizes[0].first;
    size_t chosen = 0;
    for (size_t k = 0; k < sizes.size(); ++k) {
      const Past& past = plan_.pasts[sizes[k].second];
      kept += flow(past.value).count * row(past);
      const int64_t all = kept + (k + 1 < sizes.size() ? sizes[k + 1].first : 0);
      if (all < least) least = all, chosen = k + 1;
    }
    for (size_t k = 0; k < chosen; ++k) plan_.pasts[sizes[k].second].with_piece = true;
  }

  void name_states() {
    std::vector<std::string> taken = from_.result_names;
    for (const ValueId parameter : from_.params) {
      taken.push_back(parameter_name(from_.node(parameter)));
    }
    const auto name_of = [&](ValueId value) {
      const Node& node = from_.node(value);
      return is_parameter(node) ? parameter_name(node) : node.loc.node;
    };
    for (Past& past : plan_.pasts) {
      if (past.depth > 0) past.state = fresh_name(taken, name_of(past.value) + ".past");
    }
    for (int32_t i = 0; i < from_.size(); ++i) {
      StreamedNode& node = of(ValueId(i));
      for (size_t k = 0; k < node.carried_initial.size(); ++k) {
        node.carried.push_back(fresh_name(taken, name_of(ValueId(i)) + ".carried"));
      }
    }
    if (plan_.counted_calls > 0) plan_.counter = fresh_name(taken, "calls");
  }

  const Module& module_;
  const Function& from_;
  const StreamOptions& options_;
  StreamPlan plan_;
  std::vector<Stretch> stretches_;
  std::vector<std::pair<const Loc*, Flow>> ends_;
  int64_t first_extent_ = 0, hop_ = 1;  // of the first input
};

}  // namespace

StreamPlan plan_stream(const Module& module, const Function& function,
                       const StreamOptions& options) {
  return StreamPlanner(module, function, options).run();
}

}  // namespace backcast
