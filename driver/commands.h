// The subcommands. Each adds its options to the command line and returns the action to run when it
// was chosen: the exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace backcast {

using Action = std::function<int()>;

Action add_compile(CLI::App& app);
Action add_inspect(CLI::App& app);
Action add_run(CLI::App& app);
Action add_verify(CLI::App& app);
Action add_export(CLI::App& app);
Action add_quantize(CLI::App& app);
Action add_gradcheck(CLI::App& app);
Action add_opt(CLI::App& app);

}  // namespace backcast
