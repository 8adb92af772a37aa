#include "driver/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>

namespace backcast {
namespace {

[[noreturn]] void run_child(const std::vector<std::string>& argv, const std::string& folder,
                            int output) {
  setpgid(0, 0);
  int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(output, 1);
  dup2(output, 2);
  if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(126);
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  execvp(args[0], args.data());
  _exit(127);
}

}  // namespace

SubprocessResult run_subprocess(const std::vector<std::string>& argv, const std::string& folder,
                                int seconds) {
  SubprocessResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {126, "cannot make a pipe"};
  pid_t child = fork();
  if (child == 0) run_child(argv, folder, ends[1]);
  close(ends[1]);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  bool late = false;
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{ends[0], POLLIN, 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
      late = true;
      kill(-child, SIGKILL);
      break;
    }
    char bytes[4096];
    ssize_t n = read(ends[0], bytes, sizeof bytes);
    if (n <= 0) break;
    result.output.append(bytes, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (late) {
    result.status = 124;
  } else {
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return result;
}

bool program_exists(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace backcast
