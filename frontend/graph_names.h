// Names in a graph of the file: which it defines, which it takes from around it, who uses which.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/onnx_model.h"

namespace backcast {

inline constexpr int kMaxGraphDepth = 32;  // of graphs within graphs

/// Of inputs, initializers and what nodes give.
std::set<std::string> defined_names(const OnnxGraph& graph);

/// What a graph uses and does not define, each once, in order; nothing when graphs in it are
/// nested deeper than kMaxGraphDepth.
std::optional<std::vector<std::string>> free_names(const OnnxGraph& graph);

/// The tensors of initializers and of nodes of type Constant, by name.
std::map<std::string, const OnnxTensor*> constants_of(const OnnxGraph& graph);

/// What nodes, graphs inside of them and functions read, or give as outputs.
std::set<std::string> used_names(const OnnxModel& model);

/// What the graphs inside of a node take from around it.
std::vector<std::string> names_of_bodies(const OnnxNode& node);

/// The places of nodes in an order in which each comes behind those that it reads, the file's order
/// where that is one: converters put nodes at the end. Nodes on a circle, and what is behind them,
/// come last.
std::vector<size_t> topological_order(const std::vector<OnnxNode>& nodes);

/// The nodes of the graph (by their place in it) that use each name, themselves or in graphs inside
/// of them; the number of nodes stands for the graph's outputs.
std::map<std::string, std::set<size_t>> users_of(const OnnxGraph& graph);

/// `name`, made longer until it is new among `taken`, which it joins.
std::string free_name(std::string name, std::set<std::string>& taken);

}  // namespace backcast
