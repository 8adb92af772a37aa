// Einsum: operands are contracted from left to right; an axis label that nobody needs any more is
// summed away as early as possible.
#include <algorithm>
#include <map>
#include <set>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// One axis: a letter, or 1000 + the distance from the end for an axis of the ellipsis.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 1000;

struct Term {
  ValueId value;
  Labels labels;
};

struct Equation {
  std::vector<std::string> inputs;
  std::optional<std::string> output;
};

Equation parse(const NodeContext& n) {
  std::string text = n.attr_string("equation", "");
  std::erase(text, ' ');
  Equation result;
  const size_t arrow = text.find("->");
  if (arrow != std::string::npos) result.output = text.substr(arrow + 2);
  std::string inputs = text.substr(0, arrow);
  while (true) {
    const size_t comma = inputs.find(',');
    result.inputs.push_back(inputs.substr(0, comma));
    if (comma == std::string::npos) break;
    inputs.erase(0, comma + 1);
  }
  if (result.inputs.size() != n.input_count()) {
    n.fail(fmt::format("attribute \"equation\" names {} operands and {} are given",
                       result.inputs.size(), n.input_count()));
  }
  return result;
}

/// The labels of a term, its ellipsis standing for `ellipsis_rank` axes.
Labels expand(const NodeContext& n, const std::string& term, int64_t ellipsis_rank) {
  Labels result;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      result.push_back(c);
      continue;
    }
    if (term.compare(i, 3, "...") != 0) {
      n.fail(fmt::format("attribute \"equation\" holds \"{}\", which is no letter", c));
    }
    i += 2;
    for (int64_t k = ellipsis_rank; k-- > 0;) result.push_back(kEllipsis + static_cast<int>(k));
  }
  return result;
}

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int64_t position(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

/// An axis named twice is replaced by the diagonal.
void take_diagonals(NodeContext& n, Term& term) {
  for (size_t j = 1; j < term.labels.size(); ++j) {
    const int64_t first = position(term.labels, term.labels[j]);
    if (first == static_cast<int64_t>(j)) continue;
    const Shape shape = n.e.shape(term.value);
    const int64_t axis = static_cast<int64_t>(j);
    if (!(shape[static_cast<size_t>(first)] == shape[j])) {
      n.fail("an axis that the equation names twice has two extents");
    }
    const ValueId on =
        n.e.compare(Comparison::eq, n.e.positions(shape, first), n.e.positions(shape, axis));
    const ValueId kept = n.e.select(on, term.value, n.e.like(term.value, 0));
    term.value = n.e.reduce(Reduction::sum, kept, {axis});
    term.labels.erase(term.labels.begin() + axis);
    --j;
  }
}

void sum_away(NodeContext& n, Term& term, const std::set<Label>& needed) {
  Ints axes;
  Labels kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (needed.count(term.labels[i]) > 0) {
      kept.push_back(term.labels[i]);
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  term.value = n.e.reduce(Reduction::sum, term.value, axes);
  term.labels = kept;
}

/// Drops the axes of extent 1 that the other operand stretches.
void drop_stretched(NodeContext& n, Term& term, const Term& other) {
  Shape shape;
  Labels kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const Dim extent = n.e.extent(term.value, static_cast<int64_t>(i));
    const int64_t at = position(other.labels, term.labels[i]);
    const bool shared = contains(other.labels, term.labels[i]);
    if (shared && extent == Dim(1) && !(n.e.extent(other.value, at) == Dim(1))) continue;
    shape.push_back(extent);
    kept.push_back(term.labels[i]);
  }
  term.value = n.e.reshape(term.value, shape);
  term.labels = kept;
}

Term contract(NodeContext& n, Term a, Term b, const std::set<Label>& needed_later) {
  std::set<Label> needed_by_a = needed_later, needed_by_b = needed_later;
  needed_by_a.insert(b.labels.begin(), b.labels.end());
  needed_by_b.insert(a.labels.begin(), a.labels.end());
  sum_away(n, a, needed_by_a);
  sum_away(n, b, needed_by_b);
  drop_stretched(n, a, b);
  drop_stretched(n, b, a);
  DotGeneralAttrs attrs;
  Term result;
  Labels a_free, b_free;
  for (size_t i = 0; i < a.labels.size(); ++i) {
    const Label label = a.labels[i];
    if (!contains(b.labels, label)) {
      a_free.push_back(label);
      continue;
    }
    const bool batch = needed_later.count(label) > 0;
    (batch ? attrs.lhs_batch : attrs.lhs_contract).push_back(static_cast<int64_t>(i));
    (batch ? attrs.rhs_batch : attrs.rhs_contract).push_back(position(b.labels, label));
    if (batch) result.labels.push_back(label);
  }
  for (const Label label : b.labels) {
    if (!contains(a.labels, label)) b_free.push_back(label);
  }
  result.value = n.e.dot(a.value, b.value, std::move(attrs));
  result.labels.insert(result.labels.end(), a_free.begin(), a_free.end());
  result.labels.insert(result.labels.end(), b_free.begin(), b_free.end());
  return result;
}

/// Without an arrow: the ellipsis, then the letters that occur once, in alphabetical order.
Labels implicit_output(const std::vector<Term>& terms, int64_t ellipsis_rank) {
  std::map<Label, int> counts;
  for (const Term& term : terms) {
    for (const Label label : term.labels) ++counts[label];
  }
  Labels result;
  for (int64_t k = ellipsis_rank; k-- > 0;) result.push_back(kEllipsis + static_cast<int>(k));
  for (const auto& [label, count] : counts) {
    if (label < kEllipsis && count == 1) result.push_back(label);
  }
  return result;
}

}  // namespace

void import_einsum(NodeContext& n) {
  const Equation equation = parse(n);
  std::vector<Term> terms;
  int64_t ellipsis_rank = 0;
  for (size_t i = 0; i < n.input_count(); ++i) {
    const std::string& text = equation.inputs[i];
    const size_t dots = text.find("...");
    const int64_t letters = static_cast<int64_t>(text.size()) - (dots == std::string::npos ? 0 : 3);
    const int64_t covered = n.rank(i) - letters;
    if (covered < 0 || (covered > 0 && dots == std::string::npos)) {
      n.fail(
          fmt::format("operand {} has rank {} and the equation says \"{}\"", i, n.rank(i), text));
    }
    ellipsis_rank = std::max(ellipsis_rank, covered);
    terms.push_back({n.input(i), expand(n, text, covered)});
    if (static_cast<int64_t>(terms.back().labels.size()) != n.rank(i)) {
      n.fail(fmt::format("the equation's term \"{}\" is malformed", text));
    }
  }
  const Labels output = equation.output ? expand(n, *equation.output, ellipsis_rank)
                                        : implicit_output(terms, ellipsis_rank);
  for (Term& term : terms) take_diagonals(n, term);
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::set<Label> needed(output.begin(), output.end());
    for (size_t j = i + 1; j < terms.size(); ++j) {
      needed.insert(terms[j].labels.begin(), terms[j].labels.end());
    }
    result = contract(n, result, terms[i], needed);
  }
  sum_away(n, result, {output.begin(), output.end()});
  Ints permutation;
  for (const Label label : output) {
    if (!contains(result.labels, label)) n.fail("the equation's output names an unknown axis");
    permutation.push_back(position(result.labels, label));
  }
  if (permutation.size() != result.labels.size()) {
    n.fail("the equation's output names an axis twice");
  }
  n.result(n.e.transpose(result.value, permutation));
}

}  // namespace backcast
