// Gathering, scattering and sorting.
#include "tests/ops/gradient_cases.h"

namespace backcast {
namespace {

/// x[indices] along the first dimension of a matrix of `columns` columns.
GatherAttrs rows(int64_t columns) {
  GatherAttrs attrs;
  attrs.offset_dims = {1};
  attrs.collapsed_slice_dims = attrs.start_index_map = {0};
  attrs.index_vector_dim = 1;
  attrs.slice_sizes = {1, columns};
  return attrs;
}

void gathers(GradientCases& cases) {
  const Literal x = spread({3, 4});
  cases.push_back({&ops::gather, "rows, one twice", {x, i64({3}, {2, 0, 2})}, rows(4)});
  cases.push_back({&ops::gather, "starts are clamped", {x, i64({3}, {-1, 7, 1})}, rows(4)});
  cases.push_back(
      {&ops::gather, "narrow indices", {x, tensor(ElementType::u8, {2}, {1, 9})}, rows(4)});
  GatherAttrs windows;
  windows.offset_dims = {0, 2};
  windows.start_index_map = {1, 0};
  windows.index_vector_dim = 1;
  windows.slice_sizes = {2, 3};
  cases.push_back({&ops::gather,
                   "overlapping windows, clamped differently",
                   {x, i64({3, 2}, {0, 1, 1, 0, 5, 5})},
                   windows});
  GatherAttrs batched;
  batched.operand_batching_dims = batched.indices_batching_dims = {0};
  batched.collapsed_slice_dims = batched.start_index_map = {1};
  batched.index_vector_dim = 2;
  batched.slice_sizes = {1, 1};
  cases.push_back({&ops::gather, "batched", {x, i64({3, 2}, {0, 3, 1, 1, 2, 0})}, batched});
}

/// Single elements of a vector.
ScatterAttrs elements(Combiner combiner) {
  ScatterAttrs attrs;
  attrs.combiner = combiner;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
  attrs.index_vector_dim = 1;
  return attrs;
}

void scatters(GradientCases& cases) {
  const Literal x = spread({5}), updates = spread({4}, -2, 2, 1);
  const Literal twice = i64({4}, {3, 0, 3, 9});  // one place twice, one outside
  const std::pair<const char*, Combiner> combiners[] = {{"assign", Combiner::assign},
                                                        {"add", Combiner::add},
                                                        {"mul", Combiner::mul},
                                                        {"min", Combiner::min},
                                                        {"max", Combiner::max}};
  ScatterAttrs windows;  // 2x2 windows at (row, column)
  windows.update_window_dims = {1, 2};
  windows.scatter_dims_to_operand_dims = {0, 1};
  windows.index_vector_dim = 1;
  for (const auto& [name, combiner] : combiners) {
    cases.push_back({&ops::scatter,
                     fmt::format("{}, twice and outside", name),
                     {x, twice, updates},
                     elements(combiner)});
    windows.combiner = combiner;
    cases.push_back({&ops::scatter,
                     fmt::format("{}, overlapping windows", name),
                     {spread({3, 4}), i64({3, 2}, {0, 0, 1, 1, 2, 3}), spread({3, 2, 2}, -2, 2, 2)},
                     windows});
  }
  ScatterAttrs batched;
  batched.input_batching_dims = batched.indices_batching_dims = {0};
  batched.inserted_window_dims = batched.scatter_dims_to_operand_dims = {1};
  batched.index_vector_dim = 2;
  cases.push_back({&ops::scatter,
                   "batched",
                   {spread({2, 3}), i64({2, 2}, {0, 2, 1, 1}), spread({2, 2}, -2, 2, 1)},
                   batched});
  cases.push_back({&ops::scatter, "constant indices without duplicates", {x, spread({2})}, {}, R"(
func @main(%x: f64[5], %u: f64[2]) -> f64[5] {
  %0 = constant {value=i64[2] [4, 1]}
  %1 = scatter %x, %0, %u {combiner=assign, update_window_dims=[], inserted_window_dims=[0], input_batching_dims=[], indices_batching_dims=[], scatter_dims_to_operand_dims=[0], index_vector_dim=1}
  %2 = mul %1, %1
  return %2
})"});
  // A zero among the factors, two of them, and ties of extremes.
  cases.push_back({&ops::scatter,
                   "mul, zeros",
                   {f64({3}, {2, 3, 0}), i64({5}, {0, 0, 1, 1, 2}), f64({5}, {0, 5, 0, 0, 7})},
                   elements(Combiner::mul),
                   {},
                   {f64({3}, {0, 0, 7}), f64({5}, {10, 0, 0, 0, 0})}});
  cases.push_back({&ops::scatter,
                   "max, ties",
                   {f64({3}, {2, 1, 4}), i64({4}, {0, 1, 1, 2}), f64({4}, {2, 5, 5, 1})},
                   elements(Combiner::max),
                   {},
                   {f64({3}, {0.5, 0, 1}), f64({4}, {0.5, 0.5, 0.5, 0})}});
}

void sorts(GradientCases& cases) {
  cases.push_back({&ops::top_k, "largest", {spread({2, 5})}, TopKAttrs{3, 1, true}});
  cases.push_back({&ops::top_k, "smallest, first axis", {spread({4, 2})}, TopKAttrs{2, 0, false}});
  cases.push_back({&ops::arg_reduce, "passes nothing", {spread({2, 3})}, {}, R"(
func @main(%x: f64[2,3]) -> (i64[2], f64[2,3]) {
  %0 = arg_reduce %x {kind=max, axis=1, last=false}
  %1 = mul %x, %x
  %2 = tuple %0, %1
  return %2
})"});
}

}  // namespace

GradientCases indexing_gradients() {
  GradientCases cases;
  gathers(cases);
  scatters(cases);
  sorts(cases);
  return cases;
}

}  // namespace backcast
