// NonMaxSuppression: of each class, boxes in the order of their scores, but for those that overlap
// one taken before.
#include <limits>

#include "frontend/operators.h"
#include "frontend/rules/selection.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

constexpr size_t kEdges = 5;  // of a box: low and high of both axes, and the area

// Operands of the loop over a class's boxes. The first carries say whether to go on and how many
// are taken. All but those that count are of one type, so that vectors of one length serve.
constexpr size_t kLast = 2, kBox = 3;      // score and number of the box that was held last
constexpr size_t kNext = 4;                // the highest score that is left
constexpr size_t kHighest = 5;             // and that of each block of boxes, [blocks]
constexpr size_t kOld = 6;                 // the edges of the boxes that are taken, [most]
constexpr size_t kChosen = kOld + kEdges;  // which they are, the last carry
constexpr size_t kScores = kChosen + 1;    // [blocks, block]; edges, most and limit follow
constexpr size_t kPlaces = kScores + 4;    // within a block, of blocks

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
    block_ = boxes_.is_constant() ? 16 : 64;  // about as many as there are blocks
    while (boxes_.is_constant() && block_ * block_ < boxes_.constant()) block_ *= 2;
    blocks_ = Dim::ceil_div(boxes_, Dim(block_));
    most_ = n.has(2) ? boxes_ : Dim(0);
    const std::optional<Ints> known = n.has(2) ? n.known_ints(2) : std::nullopt;
    if (known && known->size() == 1) {
      const int64_t most = std::max<int64_t>(known->front(), 0);
      if (boxes_.range(n.ranges()).max > most) most_ = Dim::min(boxes_, Dim(most));
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
    // What is no number is never wanted. Lower than any that is are those taken or held against.
    const ValueId wanted = p.size() > 5
                               ? e.compare(Comparison::gt, scores, e.broadcast_to(p[5], {boxes_}))
                               : e.compare(Comparison::eq, scores, scores);
    const ValueId gone = e.lowest({real_, {}});
    const ValueId finite = e.max(scores, e.like(scores, -std::numeric_limits<float>::max()));
    const ValueId left = e.select(wanted, finite, e.broadcast_to(gone, {boxes_}));
    const ValueId blocks =
        e.reshape(e.pad(left, gone, {0}, {blocks_ * block_ - boxes_}), {blocks_, block_});
    const ValueId none = e.filled({real_, {most_}}, 0);  // shares nothing with any box
    const ValueId highest = e.reduce(Reduction::max, blocks, {1});
    const ValueId next = e.reduce(Reduction::max, highest, {0});
    std::vector<ValueId> operands = {e.dimension(boxes_),
                                     goes_on(e, next, e.scalar(real_, 0), most),
                                     e.scalar(real_, 0),
                                     e.highest({real_, {}}),
                                     e.scalar(real_, -1),
                                     next,
                                     highest};
    operands.insert(operands.end(), kEdges + 1, none);
    ScanAttrs attrs{.carries = static_cast<int64_t>(operands.size()) - 1,
                    .length = boxes_,
                    .conditional = true};
    operands.push_back(blocks);
    operands.push_back(batch_ == Dim(1) ? e.reshape(p[2], {boxes_, static_cast<int64_t>(kEdges)})
                                        : e.take(p[2], example, 0));
    operands.push_back(most);
    operands.push_back(p[4]);
    // To be read, not counted again.
    operands.push_back(e.iota(real_, {block_}, 0));
    operands.push_back(e.iota(real_, {blocks_}, 0));
    attrs.body = n_.scan_body(
        e, operands, attrs,
        [&](Emitter& inner, const std::vector<ValueId>& q) { return of_box(inner, q); });
    const ValueId taken = e.emit(ops::scan, operands, std::move(attrs));
    return e.tuple({e.get(taken, kChosen), e.get(taken, 1)});
  }

  /// A vector with one element of another value; none when there is no such place.
  static ValueId put_one(Emitter& e, ValueId x, ValueId place, ValueId value) {
    return put(e, x, e.reshape(place, {1}), e.reshape(value, {1}), Combiner::assign);
  }

  /// Whether there is a box left and room for it.
  static ValueId goes_on(Emitter& e, ValueId next, ValueId count, ValueId most) {
    return e.emit(ops::bit_and, {e.compare(Comparison::gt, next, e.lowest(e.type(next))),
                                 e.compare(Comparison::lt, count, most)});
  }

  struct Best {
    ValueId box;
    ValueId highest;  // score of each block without it and those before it, [blocks]
  };

  /// The best box behind the last one, of two equal ones the first. A search for each costs less
  /// than to sort where few are wanted, as usual; it looks through the highest score of each block
  /// of boxes, and through one block.
  Best next_best(Emitter& e, const std::vector<ValueId>& p) {
    const ValueId highest = p[kHighest], in_block = p[kPlaces], of_block = p[kPlaces + 1];
    // The first place at which `is_there` holds.
    const auto first = [&](ValueId is_there, ValueId places) {
      return e.reduce(Reduction::min, e.select(is_there, places, e.highest(e.type(places))), {0});
    };
    const auto is_equal = [&](ValueId x, ValueId value) {
      return e.compare(Comparison::eq, x, e.broadcast_to(value, e.shape(x)));
    };
    const ValueId score = p[kNext];
    const ValueId block = first(is_equal(highest, score), of_block);
    const ValueId scores = e.take(p[kScores], e.cast(block, ElementType::i32), 0);
    const ValueId start = e.mul(block, static_cast<double>(block_));
    const ValueId number = e.add(in_block, e.broadcast_to(start, {block_}));
    const auto is_behind = [&](ValueId box) {
      return e.compare(Comparison::gt, number, e.broadcast_to(box, {block_}));
    };
    const ValueId is_lower = e.compare(Comparison::lt, score, p[kLast]);
    const ValueId before = e.select(is_lower, e.like(p[kBox], -1), p[kBox]);
    const ValueId is_best = is_equal(scores, score);
    const ValueId box = first(e.emit(ops::bit_and, {is_best, is_behind(before)}), number);
    const ValueId is_left =
        e.emit(ops::bit_or, {e.compare(Comparison::lt, scores, e.broadcast_to(score, {block_})),
                             e.emit(ops::bit_and, {is_best, is_behind(box)})});
    const ValueId rest =
        e.reduce(Reduction::max, e.select(is_left, scores, e.lowest(e.type(scores))), {0});
    return {box, put_one(e, highest, e.cast(block, ElementType::i32), rest)};
  }

  /// Holds the next box against those taken.
  ValueId of_box(Emitter& e, const std::vector<ValueId>& p) {
    const ValueId count = p[1], corners = p[kScores + 1], most = p[kScores + 2];
    const auto [box, highest] = next_best(e, p);
    const Shape all{most_};
    const auto old = [&](size_t edge) { return p[kOld + edge]; };
    const ValueId row = e.take(corners, e.cast(box, ElementType::i32), 0);
    const auto edge = [&](size_t i) {
      const auto at = static_cast<int64_t>(i);
      return e.reshape(e.slice_axis(row, 0, at, at + 1), {});
    };
    const auto now = [&](size_t i) { return e.broadcast_to(edge(i), all); };
    ValueId shared;
    for (size_t d = 0; d < 2; ++d) {
      const ValueId side = e.sub(e.min(old(2 + d), now(2 + d)), e.max(old(d), now(d)));
      const ValueId length = e.max(side, e.like(side, 0));
      shared = shared.valid() ? e.mul(shared, length) : length;
    }
    const ValueId ratio = e.div(shared, e.sub(e.add(old(4), now(4)), shared));
    const ValueId is_shared = e.compare(Comparison::gt, shared, 0.0);
    const ValueId ratios = e.select(is_shared, ratio, e.like(ratio, -1));
    const ValueId worst = e.max(e.reduce(Reduction::max, ratios, {0}), e.scalar(real_, -1));
    const ValueId is_covered = e.compare(Comparison::gt, worst, p[kScores + 3]);
    // Behind all of them is no place.
    const ValueId slot =
        e.cast(e.select(is_covered, e.like(count, std::numeric_limits<int32_t>::max() / 2), count),
               ElementType::i32);
    const ValueId counted = e.select(is_covered, count, e.add(count, 1.0));
    const ValueId next = e.reduce(Reduction::max, highest, {0});
    std::vector<ValueId> results = {
        goes_on(e, next, counted, most), counted, p[kNext], box, next, highest};
    for (size_t i = 0; i < kEdges; ++i) results.push_back(put_one(e, old(i), slot, edge(i)));
    results.push_back(put_one(e, p[kChosen], slot, box));
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
  Dim most_;       // boxes that are taken of a class
  int64_t block_;  // boxes in a block
  Dim blocks_;     // with the last one filled up
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
