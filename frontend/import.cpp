// The entry points: bytes, mirror, walk.
#include "frontend/import.h"

#include <filesystem>

#include "frontend/graph_importer.h"
#include "frontend/onnx_proto.h"
#include "frontend/onnx_tensors.h"

namespace backcast {

namespace {

OnnxModel parse_file(const std::string& path) {
  const MappedFile file = map_file(path);
  return parse_model_proto({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
}

}  // namespace

ImportedModel import_model_bytes(std::string_view bytes, const std::string& model_dir,
                                 const ImportOptions& options) {
  const OnnxModel model = parse_model_proto(bytes);
  return GraphImporter(model, model_dir, options).run();
}

ImportedModel import_model(const std::string& path, const ImportOptions& options) {
  const OnnxModel model = parse_file(path);
  const std::filesystem::path dir = std::filesystem::path(path).parent_path();
  return GraphImporter(model, dir.empty() ? "." : dir, options).run();
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
