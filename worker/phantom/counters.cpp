#include "worker/phantom/counters.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "worker/phantom/description.h"
#include "worker/phantom/export.h"

namespace sweep::phantom {
namespace {

constexpr std::array<const char*, static_cast<int>(Kind::kCount)> kNames = {
    "all_reduce", "broadcast", "reduce",  "all_gather", "reduce_scatter",
    "all_to_all", "gather",    "scatter", "send",       "recv"};

// Text into a fixed buffer, without allocating.
class Text {
 public:
  void add(const char* text) {
    const std::size_t n = std::min(std::strlen(text), sizeof text_ - used_);
    std::memcpy(text_ + used_, text, n);
    used_ += n;
  }
  void add(std::int64_t value) {
    char digits[24], *at = digits + sizeof digits - 1;
    *at = 0;
    std::uint64_t rest =
        value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do *--at = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (value < 0) *--at = '-';
    add(at);
  }
  void member(const char* name, std::int64_t value) {
    add(used_ > 0 && text_[used_ - 1] != '{' ? ", \"" : "\"");
    add(name);
    add("\": ");
    add(value);
  }
  const char* data() const { return text_; }
  std::size_t size() const { return used_; }

 private:
  char text_[4096];
  std::size_t used_ = 0;
};

void add_all(Text& out) {
  const Counters& c = counters();
  const auto member = [&](const char* name, const auto& value) {
    out.member(name, static_cast<std::int64_t>(value.load()));
  };
  out.add("{");
  out.member("pid", ::getpid());
  out.member("rank", rank_of_process());
  member("device", c.device);
  member("launches", c.launches);
  member("told_launches", c.told_launches);
  member("told_bytes", c.told_bytes);
  member("matmuls", c.matmuls);
  member("graph_launches", c.graph_launches);
  member("host_syncs", c.host_syncs);
  member("event_queries", c.event_queries);
  member("memcpys", c.memcpys);
  member("memcpy_bytes", c.memcpy_bytes);
  member("memsets", c.memsets);
  member("mallocs", c.mallocs);
  member("frees", c.frees);
  member("malloc_failures", c.malloc_failures);
  member("pinned_bytes", c.pinned_bytes);
  member("peak_pinned_bytes", c.peak_pinned_bytes);
  member("held_bytes", c.held_bytes);
  member("peak_held_bytes", c.peak_held_bytes);
  member("kernel_ns", c.kernel_ns);
  member("tabled_ns", c.tabled_ns);
  member("scaled_ns", c.scaled_ns);
  member("host_ns", c.host_ns);
  member("device_ns", c.device_ns);
  member("host_work_ns", c.host_work_ns);
  member("busy_ns", c.busy_ns);
  if (const char* name = c.not_answered) {
    out.add(", \"not_answered\": \"");
    out.add(name);
    out.add("\"");
  }
  out.add(", \"collectives\": {");
  for (std::size_t k = 0; k < kNames.size(); ++k) {
    if (c.collectives[k] == 0) continue;
    out.add(out.data()[out.size() - 1] == '{' ? "\"" : ", \"");
    out.add(kNames[k]);
    out.add("\": {");
    member("count", c.collectives[k]);
    member("bytes", c.collective_bytes[k]);
    out.add("}");
  }
  out.add("}}\n");
}

// The file's name, with %p (process id) and %r (rank) replaced. Without allocating.
void file_name(const char* pattern, Text& out) {
  for (; *pattern != 0; ++pattern) {
    const char one[2] = {*pattern, 0};
    if (pattern[0] == '%' && pattern[1] == 'p') {
      out.add(static_cast<std::int64_t>(::getpid()));
      ++pattern;
    } else if (pattern[0] == '%' && pattern[1] == 'r') {
      out.add(static_cast<std::int64_t>(rank_of_process()));
      ++pattern;
    } else {
      out.add(one);
    }
  }
}

const char* pattern = nullptr;  // value of SWEEP_PHANTOM_COUNTERS; read before main

void on_signal(int) {
  write_counters();
}

__attribute__((constructor)) void begin_counting() {
  counters().rank = -1;
  counters().device = -1;
  pattern = std::getenv("SWEEP_PHANTOM_COUNTERS");
  const char* signal = std::getenv("SWEEP_PHANTOM_COUNTERS_SIGNAL");
  if (pattern != nullptr && signal != nullptr && std::atoi(signal) > 0)
    ::signal(std::atoi(signal), on_signal);
}

__attribute__((destructor)) void end_counting() {
  write_counters();
}

}  // namespace

const char* name_of(Kind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

Counters& counters() {
  static Counters counted;
  return counted;
}

int rank_of_process() {
  for (const char* name : {"SWEEP_PHANTOM_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  return counters().rank;
}

std::string file_of_process(const char* named) {
  Text name;
  file_name(named, name);
  return {name.data(), name.size()};
}

void refuse(const char* name) {
  say_lacking(name);
  if (counters().not_answered.exchange(name) == nullptr) write_counters();  // the program may abort
}

void write_counters() {
  if (pattern == nullptr || counters().device < 0) return;
  Text name, body;
  file_name(pattern, name);
  add_all(body);
  char path[4097] = {};
  std::memcpy(path, name.data(), std::min(name.size(), sizeof path - 1));
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  (void)!::write(fd, body.data(), body.size());
  ::close(fd);
}

}  // namespace sweep::phantom

PHANTOM_API void sweep_phantom_write_counters() {
  sweep::phantom::write_counters();
}

// The same JSON object as a text of at most `size` - 1 bytes.
PHANTOM_API void sweep_phantom_counters(char* out, std::size_t size) {
  sweep::phantom::Text body;
  sweep::phantom::add_all(body);
  const std::size_t n = std::min(body.size(), size - 1);
  std::memcpy(out, body.data(), n);
  out[n] = 0;
}

// Programs that end without destructors are counted too.
PHANTOM_API __attribute__((noreturn)) void _exit(int code) {
  sweep::phantom::write_counters();
  for (;;) ::syscall(SYS_exit_group, code);
}
