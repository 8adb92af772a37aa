// Turns declared dimensions into dimension expressions and binds symbols as the user asked.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/import.h"
#include "frontend/onnx_model.h"

namespace backcast {

/// Some text as the name of a symbol.
std::string symbol_name(const std::string& text);

class SymbolTable {
 public:
  /// `inputs` are the graph's; a dim_param is read as an expression ("2*N") when its symbols occur
  /// as dimensions of their own, otherwise as a name.
  SymbolTable(const std::vector<OnnxValueInfo>& inputs, const ImportOptions& options);

  /// The dimension of an input; unknown ones get a symbol named after input and axis.
  Dim input_dim(const OnnxDim& dim, const std::string& input, size_t axis);
  /// A dimension declared elsewhere; none when it is unknown or names no symbol of an input.
  std::optional<Dim> declared_dim(const OnnxDim& dim) const;

  /// Ranges of the symbols that stay symbolic.
  const SymbolRanges& ranges() const { return ranges_; }
  /// Call when all inputs are through: CompileError when the options name an unknown dimension.
  void check_options() const;
  const std::vector<std::string>& notes() const { return notes_; }
  /// See ImportedModel::endless.
  bool is_endless() const { return is_endless_; }

 private:
  std::string valid_name(const std::string& text) const;
  /// The dimension that the file calls `text`.
  Dim symbol(const std::string& text);
  /// What the options say of it.
  DimRange range_of(const std::string& name, const std::string& text);
  Dim expression(const std::string& text);

  const ImportOptions& options_;
  bool batch_seen_ = false;
  std::string batch_name_;                // the symbol that ImportOptions::batch binds
  std::set<std::string> plain_names_;     // dim_params that are valid names
  std::map<std::string, Dim> bound_;      // by name
  std::map<std::string, Dim> by_text_;    // by dim_param as written
  std::map<std::string, DimRange> seen_;  // by text, what ImportOptions::shapes have
  std::set<std::string> endless_;         // texts of the lengths of sequences
  bool is_endless_ = false;               // one of them was asked for
  SymbolRanges ranges_;
  std::vector<std::string> notes_;
};

}  // namespace backcast
