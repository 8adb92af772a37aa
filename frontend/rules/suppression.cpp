// NonMaxSuppression: of each class, boxes in the order of their scores, but for those that overlap
// one taken before.
#include "frontend/operators.h"
#include "frontend/rules/selection.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

constexpr size_t kEdges = 5;  // of a box: low and high of both axes, and the area

/// One class after the other; of each, every box that may be taken is held against those that were.
class Suppression {
 public:
  explicit Suppression(NodeContext& n) : n_(n) {
    if (n.rank(0) != 3 || n.rank(1) != 3 || !(n.shape(0)[2] == Dim(4))) {
      n.fail("boxes have to be [batch, boxes, 4], scores [batch, classes, boxes]");
    }
    batch_ = n.shape(1)[0];
    classes_ = n.shape(1)[1];
    boxes_ = n.shape(1)[2];
    if (!(n.shape(0)[0] == batch_) || !(n.shape(0)[1] == boxes_)) {
      n.fail("boxes and scores are of different numbers of boxes");
    }
    real_ = n.element(0);
    most_ = n.has(2) ? boxes_ : Dim(0);
    const std::optional<Ints> known = n.has(2) ? n.known_ints(2) : std::nullopt;
    if (known && known->size() == 1) {
      most_ = Dim::min(boxes_, Dim(std::max<int64_t>(known->front(), 0)));
    }
  }

  void run() {
    Emitter& e = n_.e;
    const Dim rows = batch_ * classes_;
    const ValueId row = e.positions({rows}, 0);
    const ValueId classes = e.broadcast_to(e.cast(e.dimension(classes_), e.element(row)), {rows});
    std::vector<ValueId> operands = {e.dimension(rows),
                                     e.cast(e.reshape(n_.input(1), {rows, boxes_}), real_),
                                     e.div(row, classes), edges()};
    operands.push_back(n_.has(2) ? scalar(2) : e.scalar(real_, 0));
    operands.push_back(n_.has(3) ? scalar(3) : e.scalar(real_, 0));
    if (n_.has(4)) operands.push_back(scalar(4));
    ScanAttrs attrs{.xs = 2, .length = rows};
    attrs.body = n_.scan_body(
        e, operands, attrs,
        [&](Emitter& inner, const std::vector<ValueId>& p) { return of_class(inner, p); });
    const ValueId taken = e.emit(ops::scan, operands, std::move(attrs));
    report(e.get(taken, 0), e.get(taken, 1));
  }

 private:
  ValueId scalar(size_t input) { return n_.e.cast(n_.e.reshape(n_.input(input), {}), real_); }

  /// [batch, boxes, kEdges]
  ValueId edges() {
    Emitter& e = n_.e;
    ValueId part[4];
    for (int64_t i = 0; i < 4; ++i) part[i] = e.slice_axis(n_.input(0), 2, i, i + 1);
    std::vector<ValueId> low, high;
    for (int d = 0; d < 2; ++d) {
      if (n_.attr_int("center_point_box", 0) != 0) {  // x and y of the middle, width, height
        const ValueId half = e.div(part[3 - d], 2.0);
        low.push_back(e.sub(part[1 - d], half));
        high.push_back(e.add(part[1 - d], half));
      } else {  // y and x of two corners, whichever
        low.push_back(e.min(part[d], part[2 + d]));
        high.push_back(e.max(part[d], part[2 + d]));
      }
    }
    const ValueId area = e.mul(e.sub(high[0], low[0]), e.sub(high[1], low[1]));
    return e.concat({low[0], low[1], high[0], high[1], area}, 2);
  }

  /// Of scores [boxes] and the example they are of: which boxes are taken, [most], and how many.
  ValueId of_class(Emitter& e, const std::vector<ValueId>& p) {
    const ValueId scores = p[0], example = p[1], most = p[3];
    // The wanted ones come first. What is no number is never wanted.
    const ValueId wanted = p.size() > 5
                               ? e.compare(Comparison::gt, scores, e.broadcast_to(p[5], {boxes_}))
                               : e.compare(Comparison::eq, scores, scores);
    const ValueId none = e.filled({real_, {most_}}, 0);  // shares nothing with any box
    std::vector<ValueId> operands = {
        e.reduce(Reduction::sum, e.cast(wanted, ElementType::i64), {0}),
        e.compare(Comparison::gt, most, 0.0), e.scalar(real_, 0), e.highest({real_, {}}),
        e.scalar(real_, -1)};
    operands.insert(operands.end(), kEdges + 1, none);
    ScanAttrs attrs{.carries = static_cast<int64_t>(operands.size()) - 1,
                    .length = boxes_,
                    .conditional = true};
    operands.push_back(scores);
    operands.push_back(batch_ == Dim(1) ? e.reshape(p[2], {boxes_, static_cast<int64_t>(kEdges)})
                                        : e.take(p[2], example, 0));
    operands.push_back(most);
    operands.push_back(p[4]);
    operands.push_back(e.iota(real_, {boxes_}, 0));  // to be read, not counted again
    attrs.body = n_.scan_body(
        e, operands, attrs,
        [&](Emitter& inner, const std::vector<ValueId>& q) { return of_box(inner, q); });
    const ValueId taken = e.emit(ops::scan, operands, std::move(attrs));
    return e.tuple({e.get(taken, 4 + static_cast<int64_t>(kEdges)), e.get(taken, 1)});
  }

  /// The best box behind the last one, of two equal ones the first: its score and number. A search
  /// for each costs less than to sort where few are wanted, as usual.
  std::pair<ValueId, ValueId> next_best(Emitter& e, ValueId scores, ValueId number, ValueId last,
                                        ValueId box) {
    const Shape all{boxes_};
    const auto spread = [&](ValueId value) { return e.broadcast_to(value, all); };
    const ValueId tie = e.emit(ops::bit_and, {e.compare(Comparison::eq, scores, spread(last)),
                                              e.compare(Comparison::gt, number, spread(box))});
    const ValueId is_left =
        e.emit(ops::bit_or, {e.compare(Comparison::lt, scores, spread(last)), tie});
    const ValueId left = e.select(is_left, scores, e.lowest(e.type(scores)));
    const ValueId best = e.reduce(Reduction::max, left, {0});
    const ValueId behind = e.select(e.compare(Comparison::lt, best, last), e.like(box, -1), box);
    const ValueId is_best =
        e.emit(ops::bit_and, {e.compare(Comparison::eq, scores, spread(best)),
                              e.compare(Comparison::gt, number, spread(behind))});
    const ValueId found = e.select(is_best, number, e.highest(e.type(number)));
    return {best, e.reduce(Reduction::min, found, {0})};
  }

  /// Carries: whether to go on, how many are taken, score and number of the last box that was held
  /// against these, their edges, and which they are, [most]. All are of one type, so that vectors
  /// of one length serve.
  ValueId of_box(Emitter& e, const std::vector<ValueId>& p) {
    constexpr size_t kOld = 4, kChosen = kOld + kEdges, kScores = kChosen + 1;
    const ValueId count = p[1], corners = p[kScores + 1], most = p[kScores + 2];
    const auto [score, box] = next_best(e, p[kScores], p[kScores + 4], p[2], p[3]);
    const Shape all{most_};
    const auto old = [&](size_t edge) { return p[kOld + edge]; };
    const ValueId row = e.take(corners, e.cast(box, ElementType::i32), 0);
    std::vector<ValueId> now;
    for (int64_t i = 0; i < static_cast<int64_t>(kEdges); ++i) {
      now.push_back(e.broadcast_to(e.reshape(e.slice_axis(row, 0, i, i + 1), {}), all));
    }
    ValueId shared;
    for (size_t d = 0; d < 2; ++d) {
      const ValueId side = e.sub(e.min(old(2 + d), now[2 + d]), e.max(old(d), now[d]));
      const ValueId length = e.max(side, e.like(side, 0));
      shared = shared.valid() ? e.mul(shared, length) : length;
    }
    const ValueId ratio = e.div(shared, e.sub(e.add(old(4), now[4]), shared));
    const ValueId is_shared = e.compare(Comparison::gt, shared, 0.0);
    const ValueId ratios = e.select(is_shared, ratio, e.like(ratio, -1));
    const ValueId worst = e.max(e.reduce(Reduction::max, ratios, {0}), e.scalar(real_, -1));
    const ValueId is_covered = e.compare(Comparison::gt, worst, p[kScores + 3]);
    const ValueId slot = e.select(is_covered, e.like(count, -1), count);
    const ValueId is_slot =
        e.compare(Comparison::eq, e.iota(real_, all, 0), e.broadcast_to(slot, all));
    const ValueId counted = e.select(is_covered, count, e.add(count, 1.0));
    std::vector<ValueId> results = {e.compare(Comparison::lt, counted, most), counted, score, box};
    for (size_t i = 0; i < kEdges; ++i) results.push_back(e.select(is_slot, now[i], old(i)));
    results.push_back(e.select(is_slot, e.broadcast_to(box, all), p[kChosen]));
    return e.tuple(results);
  }

  /// Rows of batch, class and box, from boxes [batch · classes, most] and how many there are of
  /// each.
  void report(ValueId chosen, ValueId counts) {
    Emitter& e = n_.e;
    const Shape grid = e.shape(chosen);
    const Dim all = batch_ * classes_ * most_;
    const ValueId is_taken =
        e.compare(Comparison::lt, e.iota(real_, grid, 1), e.broadcast_in(counts, grid, {0}));
    const ValueId places = true_places(n_, e.reshape(is_taken, {all}), all);
    const ValueId at = coordinates(e, places, {batch_, classes_, most_});
    const ValueId box = e.take(e.reshape(chosen, {all}), places, 0);
    const ValueId pair = e.cast(e.slice_axis(at, 1, 0, 2), ElementType::i64);
    n_.result(e.concat({pair, e.unsqueeze(e.cast(box, ElementType::i64), 1)}, 1));
  }

  NodeContext& n_;
  Dim batch_, classes_, boxes_;
  Dim most_;  // boxes that are taken of a class
  ElementType real_ = ElementType::f32;
};

void non_max_suppression(NodeContext& n) { Suppression(n).run(); }

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"NonMaxSuppression", 10, kNew, 2, 5, non_max_suppression, "center_point_box:i"},
};

}  // namespace

std::span<const OperatorRule> suppression_rules() { return kRules; }

}  // namespace backcast
