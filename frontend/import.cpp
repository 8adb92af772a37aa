// The entry points: bytes, mirror, walk.
#include "frontend/import.h"

#include <filesystem>

#include "frontend/graph_importer.h"
#include "frontend/onnx_proto.h"
#include "frontend/onnx_tensors.h"
#include "frontend/unquantise.h"
#include "ir/graph/error.h"

namespace backcast {

namespace {

OnnxModel parse_file(const std::string& path) {
  const MappedFile file = map_file(path);
  return parse_model_proto({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
}

std::string note_of(const Unquantised& edit, const OnnxGraph& graph) {
  constexpr size_t kMost = 4;
  std::string text = "nothing is rounded behind weights that learn";
  if (!edit.weights.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : edit.weights) {
      if (names.size() < kMost) names.push_back("\"" + name + "\"");
    }
    if (edit.weights.size() > kMost) names.push_back("…");
    text =
        fmt::format("{} quantised weight{} in floating point ({}), and nothing behind is rounded",
                    edit.weights.size(), edit.weights.size() == 1 ? " learns" : "s learn",
                    fmt::join(names, ", "));
  }
  if (edit.kept > 0) {
    text += fmt::format(", but where integers are computed with ({} node{})", edit.kept,
                        edit.kept == 1 ? "" : "s");
  }
  for (const OnnxValueInfo& output : graph.outputs) {
    if (!edit.values.contains(output.name)) continue;
    text += fmt::format("; output \"{}\" is floating-point, too", output.name);
  }
  return text;
}

ImportedModel import_graph(OnnxModel model, const std::filesystem::path& model_dir,
                           const ImportOptions& options) {
  const std::vector<std::string> quantised = quantised_weights(model.graph);
  const Unquantised edit = unquantise(model.graph, options.unquantised, model_dir);
  apply(edit, model.graph);
  for (const ImportOptions::NamedOutput& output : options.named_outputs) {
    std::vector<std::string>& outputs = model.graph.nodes.at(output.node).outputs;
    outputs.resize(std::max(outputs.size(), output.output + 1));
    outputs[output.output] = output.name;
  }
  for (const std::string& name : options.observed) {
    model.graph.outputs.emplace_back().name = name;
  }
  ImportedModel result = GraphImporter(model, model_dir, options).run();
  result.quantised_weights = quantised;
  if (!edit.nodes.empty()) result.notes.push_back(note_of(edit, model.graph));
  return result;
}

}  // namespace

ImportedModel import_model_bytes(std::string_view bytes, const std::string& model_dir,
                                 const ImportOptions& options) {
  return import_graph(parse_model_proto(bytes), model_dir, options);
}

ImportedModel import_model(const std::string& path, const ImportOptions& options) {
  const std::filesystem::path dir = std::filesystem::path(path).parent_path();
  return import_graph(parse_file(path), dir.empty() ? "." : dir, options);
}

std::vector<std::string> input_names(const std::string& path, const ImportOptions& options) {
  const OnnxModel model = parse_file(path);
  std::vector<std::string> names;
  for (const OnnxValueInfo& input : GraphImporter(model, {}, options).inputs()) {
    if (options.constants.count(input.name) == 0) names.push_back(input.name);
  }
  return names;
}

}  // namespace backcast
