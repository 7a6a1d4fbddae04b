// Marks and finds the processes of an attempt.
#include "runtime/attempt_token.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "base/files.h"
#include "base/proc.h"
#include "base/text.h"

namespace sweep {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kDigits = 20;

// The pids of a process from the namespace of this /proc down to its own ("NSpid:" of its status).
std::vector<pid_t> namespace_pids(const std::string& status) {
  std::vector<pid_t> out;
  std::size_t at = status.find("\nNSpid:");
  if (at == std::string::npos) return out;
  const char* p = status.c_str() + at + 7;
  while (*p == '\t' || *p == ' ') {
    char* end = nullptr;
    out.push_back(static_cast<pid_t>(std::strtol(p, &end, 10)));
    p = end;
  }
  return out;
}

std::string status_field(const std::string& status, std::string_view name) {
  std::size_t at = status.find(name);
  if (at == std::string::npos) return {};
  at = status.find_first_not_of("\t ", at + name.size());
  return at == std::string::npos ? std::string() : status.substr(at, status.find('\n', at) - at);
}

}  // namespace

std::string allocation_key(std::string_view allocation, const fs::path& spool) {
  std::string name;
  for (const unsigned char c : allocation.substr(0, 64))
    name += std::isalnum(c) || c == '-' || c == '_' ? static_cast<char>(c) : '_';
  std::error_code ec;
  const fs::path whole = fs::weakly_canonical(spool, ec);
  return fmt::format("{}-{:016x}", name, fnv1a((ec ? spool : whole).string()));
}

std::string node_key(std::string_view key, i64 node) {
  return node == 0 ? std::string(key) : fmt::format("{}+{}", key, node);
}

std::string attempt_token(std::string_view key, i64 attempt) {
  return fmt::format("{}/{:020}", key, attempt);
}

void mark_this_process(i64 attempt) {
  char* value = std::getenv(kAttemptVariable);
  const std::size_t size = value == nullptr ? 0 : std::strlen(value);
  if (size < kDigits) return;
  const std::string digits = fmt::format("{:020}", attempt);
  std::memcpy(value + size - kDigits, digits.data(), kDigits);
}

std::vector<MarkedProcess> marked_processes(std::string_view key, bool all_nodes) {
  const std::size_t depth = namespace_pids(files::read_proc("/proc/self/status", 1 << 14)).size();
  std::vector<MarkedProcess> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/proc", ec)) {
    const std::string name = entry.path().filename();
    if (name.empty() || !std::isdigit(static_cast<unsigned char>(name[0]))) continue;
    const auto environment = proc::Environment::of(name);
    std::string_view token = environment.value(kAttemptVariable).value_or("");
    if (!token.starts_with(key)) continue;
    token.remove_prefix(key.size());
    if (all_nodes && token.starts_with('+')) token.remove_prefix(std::min(token.find('/'), token.size()));
    if (!token.starts_with('/')) continue;  // another key that begins alike
    MarkedProcess found;
    std::from_chars(token.data() + 1, token.data() + token.size(), found.attempt);
    const std::string status = files::read_proc("/proc/" + name + "/status", 1 << 14);
    const auto pids = namespace_pids(status);
    if (depth == 0 || pids.size() < depth) continue;  // ended meanwhile, or outside our namespace
    found.pid = pids[depth - 1];
    const std::string state = status_field(status, "State:");
    found.state = state.empty() ? 'X' : state[0];
    found.command = status_field(status, "Name:");
    if (found.state != 'Z' && found.state != 'X' && found.pid != ::getpid()) out.push_back(std::move(found));
  }
  return out;
}

i64 end_marked_processes(std::string_view key, bool all_nodes, int rounds) {
  std::set<pid_t> ended;
  for (int round = 0; round < rounds; ++round) {
    const auto found = marked_processes(key, all_nodes);
    if (found.empty()) break;
    for (const auto& process : found) {
      ::kill(process.pid, SIGKILL);
      ended.insert(process.pid);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(rendezvous_home(), ec)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name.rfind(std::string(key) + "-", 0) == 0;
    std::error_code ignored;
    if (ours || (all_nodes && name.rfind(std::string(key) + "+", 0) == 0))
      fs::remove_all(entry.path(), ignored);
  }
  return static_cast<i64>(ended.size());
}

fs::path rendezvous_home() {
  return fmt::format("/dev/shm/sweep-{}", ::geteuid());
}

fs::path rendezvous_root(std::string_view key, i64 incarnation) {
  return rendezvous_home() / fmt::format("{}-{}", key, incarnation);
}

}  // namespace sweep
