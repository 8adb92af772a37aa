// The entry points: bytes, mirror, walk.
#include "frontend/import.h"

#include <filesystem>

#include "frontend/graph_importer.h"
#include "frontend/onnx_proto.h"
#include "frontend/onnx_tensors.h"
#include "frontend/shared_initializers.h"

namespace backcast {

ImportedModel import_model_bytes(std::string_view bytes, const std::string& model_dir,
                                 const ImportOptions& options) {
  OnnxModel model = parse_model_proto(bytes);
  separate_statistics(model.graph);
  return GraphImporter(model, model_dir, options).run();
}

ImportedModel import_model(const std::string& path, const ImportOptions& options) {
  OnnxModel model = [&] {
    const MappedFile file = map_file(path);
    return parse_model_proto({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
  }();
  separate_statistics(model.graph);
  const std::filesystem::path dir = std::filesystem::path(path).parent_path();
  return GraphImporter(model, dir.empty() ? "." : dir, options).run();
}

}  // namespace backcast
