// place_instances CAPACITY FILE…: places the buffers of each file (id,lower,upper,size) within the
// capacity, checks the placement by itself and prints nodes and processor time. Fails where a file
// is not solved.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include "passes/plan/place_buffers.h"

namespace backcast {
namespace {

constexpr int64_t kNodes = 20'000'000;
constexpr int64_t kMostSilence = 10'000;  // nodes without a word

PlacementProblem read(const std::string& path) {
  PlacementProblem problem;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream row(line);
    int64_t id = 0;
    TimedBuffer buffer;
    if (row >> id >> buffer.first >> buffer.end >> buffer.bytes) problem.buffers.push_back(buffer);
  }
  return problem;
}

/// Every pair, without the help of what is tested.
bool is_valid(const PlacementProblem& problem, const std::vector<int64_t>& at, int64_t capacity) {
  const std::vector<TimedBuffer>& b = problem.buffers;
  if (at.size() != b.size()) return false;
  for (size_t i = 0; i < b.size(); ++i) {
    if (at[i] < 0 || at[i] + b[i].bytes > capacity) return false;
    for (size_t k = 0; k < i; ++k) {
      const bool together = b[i].first < b[k].end && b[k].first < b[i].end;
      if (together && at[i] < at[k] + b[k].bytes && at[k] < at[i] + b[i].bytes) return false;
    }
  }
  return true;
}

bool solve(const std::string& path, int64_t capacity) {
  const PlacementProblem problem = read(path);
  std::vector<int64_t> offsets;
  const int64_t greedy = place_greedily(problem, offsets);
  const std::clock_t begin = std::clock();
  int64_t told = 0;  // by the search, of its progress
  const PlacementResult result = place_buffers(
      problem, capacity, kNodes, [&](int64_t nodes) { told = nodes > told ? nodes : kNodes; });
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const bool solved = !problem.buffers.empty() && result.status == PlaceStatus::placed &&
                      is_valid(problem, result.offsets, capacity) && told <= result.nodes &&
                      result.nodes - told < kMostSilence;
  fmt::print("{}: {} buffers, bound {}, greedily {}, capacity {}: {} after {} nodes, {:.2f} s\n",
             path.substr(path.rfind('/') + 1), problem.buffers.size(), least_bytes(problem), greedy,
             capacity, solved ? "solved" : "NOT SOLVED", result.nodes, seconds);
  return solved;
}

}  // namespace
}  // namespace backcast

int main(int count, char** words) {
  if (count < 3) {
    fmt::print(stderr, "usage: place_instances CAPACITY FILE...\n");
    return 2;
  }
  bool all = true;
  for (int i = 2; i < count; ++i) all = backcast::solve(words[i], std::atoll(words[1])) && all;
  return all ? 0 : 1;
}
