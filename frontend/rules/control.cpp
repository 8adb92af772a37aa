// If, Loop, Scan and SequenceMap: their rows. The graph importer builds them itself
// (graph_control.cpp), because the graphs they hold see the names around them.
#include "frontend/operators.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

void imported_elsewhere(NodeContext& n) { BC_CHECK(false, "{} has no rule", n.op_type()); }

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"If", 7, kNew, 1, 1, imported_elsewhere, "then_branch:g else_branch:g"},
    {"Loop", 7, kNew, 0, -1, imported_elsewhere, "body:g"},
    {"Scan", 8, 8, 1, -1, imported_elsewhere, "body:g directions:I num_scan_inputs:i"},
    {"Scan", 9, kNew, 1, -1, imported_elsewhere,
     "body:g num_scan_inputs:i scan_input_axes:I scan_input_directions:I scan_output_axes:I "
     "scan_output_directions:I"},
    {"SequenceMap", 17, kNew, 1, -1, imported_elsewhere, "body:g"},
};

}  // namespace

std::span<const OperatorRule> control_rules() { return kRules; }

}  // namespace backcast
