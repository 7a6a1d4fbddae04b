// Reads the machine's facts from uname, /proc and NVML.
#include "worker/agent/evidence/node_probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/time.h"
#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::agent {

namespace {

// The value after "key :" of the first line of a /proc file that starts with key.
std::string first_value(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto colon = line.find(':');
    const auto from = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    return from == std::string::npos ? std::string() : line.substr(from);
  }
  return {};
}

std::string whole(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<GpuFacts> gpus(const Nvml& nvml) {
  std::vector<GpuFacts> out;
  for (int i = 0; i < nvml.count(); ++i)
    out.push_back({nvml.name(i), nvml.compute_capability(i), nvml.memory_total(i), nvml.sm_clock_mhz(i),
                   nvml.max_sm_clock_mhz(i), nvml.ecc_uncorrected(i)});
  return out;
}

// GPU faults in the kernel's log since boot; absent where this user may not read it.
std::optional<std::int64_t> xids() {
  const int fd = ::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::int64_t count = 0;
  char line[8192];
  while (true) {  // a message a read
    const ssize_t got = ::read(fd, line, sizeof line);
    if (got > 0 &&
        std::string_view(line, static_cast<std::size_t>(got)).find("NVRM: Xid") != std::string_view::npos)
      ++count;
    if (got < 0 && errno == EPIPE) continue;  // overwritten meanwhile
    if (got <= 0) break;
  }
  ::close(fd);
  return count;
}

const char* access_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "absent";
  if (S_ISDIR(info.st_mode)) return ::access(path.c_str(), W_OK | X_OK) == 0 ? "writable" : "readable";
  return ::access(path.c_str(), X_OK) == 0 ? "executable" : "readable";
}

}  // namespace

NodeRecord probe_node(const Nvml* nvml) {
  NodeRecord out;
  NodeFacts& facts = out.facts;
  utsname names{};
  // Slurm's own name for the node is the one that its options understand.
  const char* slurm = std::getenv("SLURMD_NODENAME");
  if (::uname(&names) == 0) {
    out.host = slurm != nullptr && *slurm != '\0' ? slurm : names.nodename;
    facts.kernel = std::string(names.sysname) + " " + names.release;
    facts.machine = names.machine;
  }
  facts.cpu = first_value("/proc/cpuinfo", "model name");
  if (const auto mhz = first_value("/proc/cpuinfo", "cpu MHz"); !mhz.empty()) facts.clocks = ClockFacts{mhz};
  facts.cores = std::thread::hardware_concurrency();  // the cores that this process may use
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) facts.memory_bytes = static_cast<std::int64_t>(pages) * page;
  facts.boot_id = whole("/proc/sys/kernel/random/boot_id");
  if (nvml != nullptr) {
    facts.gpus = gpus(*nvml);
    facts.driver = nvml->driver();
    facts.driver_cuda = nvml->driver_cuda();
    facts.xids = xids();
  }
  facts.version = kVersion;
  facts.build = kBuild;
  return out;
}

std::string probe_machine(const Nvml* nvml, const std::vector<std::string>& paths) {
  NodeRecord node = probe_node(nvml);
  NodeProbe out{std::move(node.facts)};
  out.host = std::move(node.host);
  for (const auto& path : paths) out.paths[path] = access_of(path);
  std::error_code ec;
  if (const auto shm = std::filesystem::space("/dev/shm", ec); !ec)
    out.shm_bytes = static_cast<i64>(shm.available);
  out.unix_ns = unix_ns_now();  // last, so that it is as close to the answer as can be
  return to_text(out);
}

}  // namespace sweep::agent
