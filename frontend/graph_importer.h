// Walks an ONNX graph in file order and applies the import rules, collecting every complaint.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/import.h"
#include "frontend/index_values.h"
#include "frontend/node_context.h"
#include "frontend/onnx_model.h"
#include "frontend/operators.h"
#include "frontend/symbols.h"

namespace backcast {

/// Whether the node is an If, Loop, Scan or SequenceMap.
bool is_control_flow(const OnnxNode& node);

class GraphImporter {
 public:
  GraphImporter(const OnnxModel& model, std::filesystem::path model_dir,
                const ImportOptions& options);

  /// CompileError with all complaints, one per line.
  ImportedModel run();
  /// What the model asks for: the graph's inputs that are no initializers, and the seed.
  std::vector<OnnxValueInfo> inputs() const;

 private:
  /// A named value: built, or a constant that is built at its first use, or one whose node failed
  /// (its users are then left out of the complaints).
  struct Entry {
    ValueId id;
    std::optional<Literal> literal;
    std::string error;  // beside a literal: for all but rules that take narrow constants
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
  Literal constant_input(const std::string& name, const TensorType& type) const;
  void add_initializers(const OnnxGraph& graph, Scope& scope);
  void declare_types(const OnnxGraph& graph, Scope& scope);
  void define(Scope& scope, const std::string& name, Entry entry, const std::string& where);
  Entry* find(Scope& scope, const std::string& name);
  ValueId use(Scope& scope, const std::string& name, bool narrow = false);

  void import_nodes(const std::vector<OnnxNode>& nodes, Scope& scope);
  void import_node(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::vector<ValueId> apply_rule(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::vector<ValueId> inline_function(const OnnxFunction& function, const OnnxNode& node,
                                       const Loc& loc, Scope& scope);

  // Control flow (graph_control.cpp, graph_branch.cpp, graph_loop.cpp, graph_scan.cpp).
  /// A subgraph as a function: its own parameters, then what it captures from around it. Captured
  /// values that are known while importing become constants of the function instead.
  struct Body {
    const OnnxGraph* graph = nullptr;
    std::vector<std::string> free;      // names it uses and does not define
    std::vector<std::string> captures;  // those of them that are operands
  };
  std::vector<ValueId> import_control(const OnnxNode& node, const Loc& loc, Scope& scope);
  /// A Loop or Scan.
  std::vector<ValueId> import_changing(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::vector<ValueId> import_if(const OnnxNode& node, const Loc& loc, Scope& scope);
  /// The branch that the attribute `name` holds, its outputs as values of the graph around it.
  std::vector<ValueId> inline_branch(const OnnxNode& node, const char* name, const Loc& loc,
                                     Scope& scope);
  std::vector<ValueId> select_branch(const OnnxNode& node, ValueId condition, const Loc& loc,
                                     Scope& scope);
  std::vector<ValueId> import_loop(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::vector<ValueId> import_scan(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::vector<ValueId> import_batched_scan(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::vector<ValueId> import_map(const OnnxNode& node, const Loc& loc, Scope& scope);
  /// `inputs`: all of the node's, the number of trips and the condition may be absent.
  std::vector<ValueId> rolled_loop(const OnnxNode& node, const Loc& loc,
                                   const std::vector<ValueId>& inputs, Scope& scope);
  std::vector<ValueId> unrolled_loop(const OnnxNode& node, const Loc& loc,
                                     const std::vector<ValueId>& inputs, Scope& scope);
  void require_tensor(ValueId id, const Loc& loc) const;
  Scope scope_around(const OnnxGraph& graph, const Loc& loc, Scope& scope);
  /// The first outputs of a graph that sees the names around it.
  std::vector<ValueId> inline_graph(const OnnxGraph& graph, const std::vector<ValueId>& inputs,
                                    size_t output_count, const Loc& loc, Scope& around);
  Body body_of(const OnnxNode& node, const std::string& attribute, const Loc& loc, Scope& scope);
  std::vector<ValueId> operands_of(const std::vector<std::string>& captures, Scope& scope);
  bool is_operand(const Entry& entry);
  /// Builds a function; `fill` emits into builder_ and gives the result.
  FunctionRef build_function(const std::string& wish, const std::function<ValueId()>& fill);
  /// The function of a body: `params` are the types of the graph's inputs, `captures` what follows
  /// them. `wrap` makes the result of the values of the parameters and of the graph's outputs.
  using Wrap = std::function<ValueId(const std::vector<ValueId>&, const std::vector<ValueId>&)>;
  FunctionRef import_body(const Body& body, const std::vector<Type>& params,
                          const std::vector<std::string>& captures, const Loc& loc, Scope& scope,
                          const Wrap& wrap);
  std::optional<Dim> given_trips(ValueId trips);
  std::optional<int64_t> counted_trips(const Function& body, size_t carries,
                                       const std::vector<ValueId>& operands,
                                       const std::optional<Dim>& given);
  Dim trip_bound(const OnnxNode& node, const Loc& loc, Scope& scope, size_t first_row);

  const OperatorRule& rule_of(const OnnxNode& node, const Loc& loc, const Scope& scope,
                              int64_t& version) const;
  std::vector<ValueId> checked_inputs(const OperatorRule& rule, const OnnxNode& node,
                                      const Loc& loc, Scope& scope);
  std::vector<ValueId> node_inputs(const OnnxNode& node, const Loc& loc, Scope& scope,
                                   bool narrow = false);
  /// The node Gradient, which names values of the graph.
  std::vector<ValueId> differentiate(const OnnxNode& node, const Loc& loc, Scope& scope);
  std::optional<Shape> declared_shape(const Scope& scope, const std::string& name) const;
  const OnnxFunction* find_function(const OnnxNode& node) const;
  [[noreturn]] void undefined(const std::string& name, const Loc& loc) const;

  /// What random numbers are made of where nothing else tells: an input more, but in training.
  std::optional<OnnxValueInfo> seed_input() const;
  /// Declares what they are made of in training.
  void add_generator();
  void list_parameters();
  void note_rounding();
  void note_shared_parameters();
  void add_statistics(std::vector<ValueId>& results, std::vector<std::string>& names);
  void add_result(const std::string& name, ValueId value, std::vector<ValueId>& results);
  ImportedModel finish(Scope& scope);

  const OnnxModel& model_;
  std::filesystem::path model_dir_;
  SymbolTable symbols_;
  ImportedModel result_;
  std::optional<int64_t> max_trips_;
  std::map<std::string, std::vector<double>> constants_;
  Builder main_builder_;
  IndexValues main_known_;
  // Of the function that is being built: main, or the body of a loop or branch.
  Builder* builder_;
  IndexValues* known_;
  std::map<std::string, std::string> composites_;
  TrainingImport training_;
  Differentiator differentiator_;
  std::set<std::string> input_names_;
  std::vector<std::string> complaints_, hints_;
  int64_t imported_nodes_ = 0;
  std::set<std::string> used_names_;
};

/// A graph in an attribute; CompileError when there is none.
const OnnxGraph& graph_of(const OnnxNode& node, const std::string& attribute, const Loc& loc);

/// x, which has to be one element of that type, with rank 0. `what` names it in the complaint.
ValueId as_scalar(Emitter& e, ValueId x, ElementType element, const char* what, const Loc& loc);

}  // namespace backcast
