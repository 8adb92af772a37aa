// Feeds mutated models to the importer: byte flips, varint edges, cuts, splices and exchanged
// operator names. Anything but a valid module or a CompileError is a bug; the input is then kept.
//
//   fuzz_importer SEED COUNT FOLDER…    COUNT mutants of every case in the folders
//   fuzz_importer --nodes SEED COUNT    COUNT models of one node each with random operands
//   fuzz_importer FILE                  one kept input again
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>

#include "driver/data_set.h"
#include "frontend/graph_importer.h"
#include "frontend/import.h"
#include "frontend/operators.h"
#include "ir/graph/error.h"
#include "ir/graph/verifier.h"

namespace backcast {
namespace {

using Random = std::mt19937_64;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

/// Puts another operator's name of equal length where one stands.
void exchange_operator(std::string& bytes, Random& random,
                       const std::vector<SupportedOperator>& operators) {
  const std::string& now = operators[below(random, operators.size())].name;
  for (size_t attempt = 0; attempt < operators.size(); ++attempt) {
    const std::string& old = operators[below(random, operators.size())].name;
    if (old.size() != now.size()) continue;
    // The length byte before it makes it a whole string.
    const size_t at = bytes.find(static_cast<char>(old.size()) + old);
    if (at == std::string::npos) continue;
    bytes.replace(at + 1, now.size(), now);
    return;
  }
}

void mutate(std::string& bytes, Random& random, const std::vector<SupportedOperator>& operators,
            const std::string& other) {
  static constexpr unsigned char kEdges[] = {0, 1, 2, 3, 7, 0x7f, 0x80, 0xfe, 0xff};
  if (bytes.empty()) return;
  const size_t at = below(random, bytes.size());
  switch (random() % 8) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    case 1:
    case 2:
      bytes[at] = static_cast<char>(kEdges[below(random, std::size(kEdges))]);
      break;
    case 3:
      bytes[at] = static_cast<char>(random());
      break;
    case 4:
      bytes.erase(at, 1 + below(random, 8));
      break;
    case 5:
      bytes.insert(at, other.substr(below(random, other.size()), 1 + below(random, 32)));
      break;
    case 6:
      if (random() % 16 == 0) bytes.resize(at);
      break;
    default:
      exchange_operator(bytes, random, operators);
  }
}

/// True when the importer behaved.
bool behaves(const std::string& bytes, std::string& what) {
  ImportOptions options;
  options.dims["N"] = {1, 8};
  options.mode = ImportMode::training;
  for (const bool bound : {true, false}) {
    try {
      const ImportedModel model = import_model_bytes(bytes, "", bound ? options : ImportOptions());
      verify(model.module);
      if (!bound || model.quantised_weights.empty()) continue;
      ImportOptions learning = options;
      learning.unquantised.insert(model.quantised_weights.begin(), model.quantised_weights.end());
      verify(import_model_bytes(bytes, "", learning).module);
    } catch (const CompileError& error) {
      what = error.what();
    } catch (const std::exception& error) {
      what = error.what();
      return false;
    }
  }
  return true;
}

/// A model of one node with operands and attributes that fit its operator's row, now and then not.
struct RandomNode {
  OnnxModel model;
  std::vector<std::vector<int64_t>> data;  // of the initializers
  std::vector<std::vector<float>> reals;
};

int64_t small(Random& random) {
  static constexpr int64_t kOften[] = {0, 1, 2, 3, -1, -2, 4, 5, 7, 1, 2, 1};
  if (random() % 40 == 0) return static_cast<int64_t>(random());
  return kOften[below(random, std::size(kOften))];
}

std::vector<int64_t> small_vector(Random& random) {
  std::vector<int64_t> result(below(random, 5));
  for (int64_t& value : result) value = small(random);
  return result;
}

OnnxAttribute random_attribute(const std::string& name, char kind, Random& random) {
  using Kind = OnnxAttribute::Kind;
  static constexpr const char* kWords[] = {"constant",    "reflect",    "edge",
                                           "wrap",        "SAME_UPPER", "SAME_LOWER",
                                           "VALID",       "NOTSET",     "linear",
                                           "cubic",       "nearest",    "add",
                                           "mul",         "none",       "mean",
                                           "sum",         "ij,jk->ik",  "ii->i",
                                           "...i,i->...", "i->",        "tf_crop_and_resize",
                                           "LEFT",        "circular",   "DCR"};
  OnnxAttribute a;
  a.name = name;
  switch (kind) {
    case 'i':
      a.kind = Kind::integer;
      a.i = small(random);
      break;
    case 'f':
      a.kind = Kind::real;
      a.f = static_cast<float>(small(random)) / 2;
      break;
    case 's':
      a.kind = Kind::string;
      a.s = kWords[below(random, std::size(kWords))];
      break;
    case 'I':
      a.kind = Kind::integers;
      a.ints = small_vector(random);
      break;
    case 'F':
      a.kind = Kind::reals;
      a.floats.assign(below(random, 4), 1.5f);
      break;
    default:
      a.kind = Kind::undefined;
  }
  return a;
}

std::vector<OnnxDim> random_shape(Random& random) {
  std::vector<OnnxDim> shape(below(random, 6));
  for (OnnxDim& d : shape) {
    const uint64_t choice = random() % 8;
    if (choice == 0) {
      d.symbol = "N";
    } else {
      d.value =
          choice == 1 && random() % 16 == 0 ? int64_t{1} << 40 : static_cast<int64_t>(choice / 2);
    }
  }
  return shape;
}

void add_operand(RandomNode& node, Random& random) {
  static constexpr int64_t kTypes[] = {1, 1, 1, 7, 7, 6, 9, 3, 2, 10, 11};
  OnnxGraph& graph = node.model.graph;
  const std::string name = fmt::format("x{}", graph.nodes[0].inputs.size());
  graph.nodes[0].inputs.push_back(random() % 12 == 0 ? "" : name);
  if (random() % 3 == 0) {
    OnnxTensor tensor;
    tensor.name = name;
    if (random() % 4 == 0) {
      node.reals.emplace_back(below(random, 5), 1.5f);
      tensor.data_type = onnx_type::kFloat;
      tensor.dims = {static_cast<int64_t>(node.reals.back().size())};
      tensor.float_data = node.reals.back();
    } else {
      node.data.push_back(small_vector(random));
      tensor.data_type = onnx_type::kInt64;
      tensor.dims = {static_cast<int64_t>(node.data.back().size())};
      tensor.int64_data = node.data.back();
    }
    if (tensor.dims[0] == 1 && random() % 2 == 0) tensor.dims.clear();
    tensor.owner = std::make_shared<int>(0);
    graph.initializers.push_back(tensor);
    return;
  }
  OnnxValueInfo info;
  info.name = name;
  info.kind = OnnxValueInfo::Kind::tensor;
  info.element_type = kTypes[below(random, std::size(kTypes))];
  info.shape = random_shape(random);
  // Equal shapes and types are what most operators want.
  if (!graph.inputs.empty() && random() % 2 == 0) {
    info.element_type = graph.inputs[0].element_type;
    info.shape = graph.inputs[0].shape;
  }
  graph.inputs.push_back(info);
}

std::unique_ptr<RandomNode> random_node(const OperatorRule& rule, Random& random) {
  std::unique_ptr<RandomNode> node = std::make_unique<RandomNode>();
  node->data.reserve(16);
  node->reals.reserve(16);
  node->model.opsets[std::string(rule.domain)] = rule.until;
  node->model.opsets.try_emplace("", kNewestOpset);
  OnnxGraph& graph = node->model.graph;
  graph.nodes.emplace_back();
  graph.nodes[0].op_type = rule.name;
  graph.nodes[0].domain = rule.domain;
  const int64_t most = rule.max_inputs < 0 ? 3 : rule.max_inputs;
  const int64_t inputs =
      rule.min_inputs +
      static_cast<int64_t>(
          below(random, static_cast<size_t>(std::max<int64_t>(0, most - rule.min_inputs) + 1)));
  for (int64_t i = 0; i < inputs; ++i) add_operand(*node, random);
  std::string_view row = rule.attributes;
  while (!row.empty()) {
    const std::string_view entry = row.substr(0, row.find(' '));
    row.remove_prefix(std::min(row.size(), entry.size() + 1));
    const size_t colon = entry.find(':');
    if (random() % 2 == 0) continue;
    graph.nodes[0].attributes.push_back(
        random_attribute(std::string(entry.substr(0, colon)), entry[colon + 1], random));
  }
  const size_t outputs = 1 + (random() % 4 == 0 ? below(random, 3) : 0);
  for (size_t k = 0; k < outputs; ++k) {
    graph.nodes[0].outputs.push_back(fmt::format("y{}", k));
    OnnxValueInfo info;
    info.name = graph.nodes[0].outputs.back();
    info.kind = OnnxValueInfo::Kind::tensor;
    info.element_type = 1;
    if (random() % 2 == 0) info.shape = random_shape(random);
    graph.outputs.push_back(info);
  }
  return node;
}

int run_nodes(uint64_t seed, int64_t count) {
  Random random(seed);
  const std::vector<SupportedOperator> operators = supported_operators();
  int64_t bugs = 0, imported = 0;
  for (int64_t k = 0; k < count && bugs < 20; ++k) {
    const SupportedOperator& one = operators[below(random, operators.size())];
    const int64_t opset = one.since + static_cast<int64_t>(below(
                                          random, static_cast<size_t>(one.until - one.since + 1)));
    const OperatorRule* rule = find_rule(one.domain, one.name, opset);
    if (!rule) continue;
    const std::unique_ptr<RandomNode> node = random_node(*rule, random);
    ImportOptions options;
    if (random() % 2 == 0) options.dims["N"] = {1, 8};
    options.mode = static_cast<ImportMode>(random() % 3);
    try {
      verify(GraphImporter(node->model, "", options).run().module);
      ++imported;
    } catch (const CompileError&) {
      continue;
    } catch (const std::exception& error) {
      std::string shapes;
      for (const OnnxValueInfo& input : node->model.graph.inputs) {
        shapes += " [";
        for (const OnnxDim& d : *input.shape) {
          shapes += (d.value ? std::to_string(*d.value) : d.symbol) + ",";
        }
        shapes += "]";
      }
      std::cout << fmt::format("{} (number {}){}: {}\n", one.name, k, shapes, error.what())
                << std::flush;
      ++bugs;
    }
  }
  std::cout << fmt::format("{} nodes, {} imported, {} bugs\n", count, imported, bugs);
  return bugs == 0 ? 0 : 1;
}

int replay(const std::string& file) {
  std::string what;
  const bool good = behaves(read_file(file), what);
  std::cout << (good ? "refused or imported: " : "BUG: ") << what << "\n";
  return good ? 0 : 1;
}

int run(uint64_t seed, int64_t count, const std::vector<std::string>& folders) {
  std::vector<std::string> corpus;
  for (const std::string& folder : folders) {
    for (const std::filesystem::path& one : find_cases(folder)) {
      corpus.push_back(read_file(one / "model.onnx"));
    }
  }
  const std::vector<SupportedOperator> operators = supported_operators();
  int64_t bugs = 0;
  for (size_t i = 0; i < corpus.size(); ++i) {
    Random random(seed * 1000003 + i);
    for (int64_t k = 0; k < count; ++k) {
      std::string bytes = corpus[i];
      const std::string& other = corpus[below(random, corpus.size())];
      const size_t mutations = 1 + below(random, 4);
      for (size_t m = 0; m < mutations; ++m) mutate(bytes, random, operators, other);
      // Kept before the run, in case it does not come back.
      std::ofstream("fuzz_importer.last", std::ios::binary) << bytes;
      const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
      std::string what;
      const bool good = behaves(bytes, what);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      if (good && seconds.count() < 10) continue;
      const std::string name = fmt::format("fuzz_importer.bug{}", bugs++);
      std::ofstream(name, std::ios::binary) << bytes;
      std::cout << fmt::format("{}: {:.1f} s, {}\n", name, seconds.count(), what);
      if (bugs >= 20) return 1;
    }
  }
  std::cout << fmt::format("{} models, {} mutants of each, {} bugs\n", corpus.size(), count, bugs);
  return bugs == 0 ? 0 : 1;
}

}  // namespace
}  // namespace backcast

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 1) return backcast::replay(arguments[0]);
  if (arguments.size() < 3) return 2;
  if (arguments[0] == "--nodes") {
    return backcast::run_nodes(std::stoull(arguments[1]), std::stoll(arguments[2]));
  }
  return backcast::run(std::stoull(arguments[0]), std::stoll(arguments[1]),
                       {arguments.begin() + 2, arguments.end()});
}
