// Static libraries.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace backcast {

/// A `.a` file with a symbol table, of members {file name, bytes}, in their order. No times, owners
/// or paths: equal input gives equal bytes.
std::string write_archive(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace backcast
