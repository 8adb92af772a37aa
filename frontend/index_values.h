// What is known at import time about small tensors: shape arithmetic folds through the graph that
// has been built so far, symbolic dimensions included.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/graph/builder.h"

namespace backcast {

class IndexValues {
 public:
  /// `builder` must outlive this object.
  explicit IndexValues(const Builder& builder) : builder_(builder) {}

  /// The elements of an integer tensor, row-major, as dimension expressions; none when they depend
  /// on data.
  std::optional<Dims> dims(ValueId id);
  /// The value of a small tensor that depends neither on data nor on symbols, or a constant of any
  /// size.
  std::optional<Literal> literal(ValueId id);

 private:
  /// Either a literal, or symbolic elements, or unknown.
  struct Known {
    std::optional<Literal> literal;
    std::optional<Dims> dims;
    bool known() const { return literal || dims; }
  };

  const Known& find(ValueId id);
  Known compute(const Node& node) const;
  Known fold(const Node& node) const;
  Known move_elements(const Node& node) const;
  Known arithmetic(const Node& node) const;
  std::optional<Dim> combine(const Node& node, const Dim& a, const Dim& b) const;
  const Known& of(ValueId id) const { return known_.at(id.index); }

  const Builder& builder_;
  std::unordered_map<int32_t, Known> known_;
};

}  // namespace backcast
