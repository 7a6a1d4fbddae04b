#include "orchestrator/launch/detached_child.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

namespace sweep::launch {
namespace {

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (auto& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

int spawn_detached(pid_t& pid, DetachedChild child) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&files, child.in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, child.out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, child.err, STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const auto argv = pointers(child.argv);
  const auto environment = pointers(child.environment);
  const int error = ::posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(),
                                   child.environment.empty() ? environ : environment.data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace sweep::launch
