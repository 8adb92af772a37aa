// Walks an ONNX graph in file order and applies the import rules, collecting every complaint.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/import.h"
#include "frontend/index_values.h"
#include "frontend/node_context.h"
#include "frontend/onnx_model.h"
#include "frontend/symbols.h"

namespace backcast {

class GraphImporter {
 public:
  GraphImporter(const OnnxModel& model, std::filesystem::path model_dir,
                const ImportOptions& options);

  /// CompileError with all complaints, one per line.
  ImportedModel run();

 private:
  /// A named value: built, or a constant that is built at its first use, or one whose node failed
  /// (its users are then left out of the complaints).
  struct Entry {
    ValueId id;
    std::optional<Literal> literal;
    std::string error;
    bool failed = false;
  };
  struct Scope {
    std::unordered_map<std::string, Entry> values;
    Scope* parent = nullptr;
    std::map<std::string, int64_t> opsets;
    std::map<std::string, const OnnxValueInfo*> declared;  // by value
    std::string prefix;  // of node names inside functions and subgraphs
    int depth = 0;
  };
  /// Thrown when an input of a node failed before: nothing to say about the node itself.
  struct Poisoned {};

  void complain(const std::string& message);
  void check_opsets();
  void add_inputs(Scope& scope);
  void add_initializers(const OnnxGraph& graph, Scope& scope);
  void declare_types(const OnnxGraph& graph, Scope& scope);
  void define(Scope& scope, const std::string& name, Entry entry, const std::string& where);
  Entry* find(Scope& scope, const std::string& name);
  ValueId use(Scope& scope, const std::string& name);

  void import_nodes(const std::vector<OnnxNode>& nodes, Scope& scope);
  void import_node(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::vector<ValueId> apply_rule(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::vector<ValueId> inline_function(const OnnxFunction& function, const OnnxNode& node,
                                       const Loc& loc, Scope& scope);
  std::vector<ValueId> inline_branch(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::vector<ValueId> node_inputs(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::optional<Shape> declared_shape(const Scope& scope, const std::string& name) const;
  const OnnxFunction* find_function(const OnnxNode& node) const;
  [[noreturn]] void undefined(const std::string& name, const Loc& loc) const;

  /// Declares what random numbers are made of, when training drops something.
  void add_generator();
  void list_parameters();
  void add_statistics(std::vector<ValueId>& results, std::vector<std::string>& names);
  ImportedModel finish(Scope& scope);

  const OnnxModel& model_;
  std::filesystem::path model_dir_;
  SymbolTable symbols_;
  ImportedModel result_;
  Builder builder_;
  IndexValues known_;
  std::map<std::string, std::string> composites_;
  TrainingImport training_;
  std::set<std::string> input_names_;
  std::vector<std::string> complaints_;
  int64_t imported_nodes_ = 0;
};

}  // namespace backcast
