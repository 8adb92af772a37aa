#include "driver/measured_moments.h"

#include <utility>

namespace backcast {

std::map<GraphEdit::Place, std::vector<Moments>> measured_moments(const MomentNodes& nodes,
                                                                  CompileRequest request,
                                                                  std::string bytes,
                                                                  const Calls& calls) {
  std::map<GraphEdit::Place, std::vector<Moments>> moments;
  if (nodes.values.empty()) return moments;
  request.bytes = std::move(bytes);
  for (const auto& [place, name] : nodes.values) {
    request.import_options.observed.push_back(name);
  }
  const RunningModel model(request);
  const size_t first = model.output_names().size() - nodes.values.size();
  for (const std::vector<Literal>& inputs : calls) {
    const std::vector<Literal> results = model.run(inputs);
    size_t result = first;
    for (const auto& [place, name] : nodes.values) {
      const Literal& value = results[result++];
      std::vector<Moments>& groups = moments[place];
      groups.resize(static_cast<size_t>(value.shape()[1]));
      const std::vector<double> sums = value.as_doubles();
      const size_t size = static_cast<size_t>(value.shape()[2]), square = size * size;
      for (size_t i = 0; i < sums.size(); ++i) {
        Moments& group = groups[i / square % groups.size()];
        group.size = size;
        group.sums.resize(square);
        group.sums[i % square] += sums[i];
      }
    }
  }
  return moments;
}

}  // namespace backcast
