// Reads what /proc says of a process. `pid` is a folder of /proc: a number, or "self". A process that ends
// meanwhile reads like one that never existed.
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/integers.h"

namespace sweep::proc {

// Fields of /proc/PID/stat (proc_pid_stat(5)).
struct Stat {
  char state = '?';  // 'Z': a zombie, 'X': dead
  pid_t parent = 0;
  i64 start_ticks = 0;  // since boot, of sysconf(_SC_CLK_TCK) a second
};
std::optional<Stat> stat_of(std::string_view pid);
// Parses the text of that file. nullopt: it has not the form of proc_pid_stat(5).
std::optional<Stat> read_stat(std::string_view text);

// For how many nanoseconds each thread of a process, and of those that it started, could have run and had no processor, by
// the thread's id. Empty: the kernel does not count it. Not deeper than a few generations.
std::map<pid_t, i64> processor_waits(std::string_view pid, int generations = 4);
// Parses the text of /proc/PID/task/TID/schedstat. nullopt: it has not three numbers.
std::optional<i64> read_processor_wait(std::string_view text);

// The name of this machine; empty: it does not say.
std::string host_name();

// Bytes of this machine that programs can still take (MemAvailable of /proc/meminfo). nullopt: it does not say.
std::optional<i64> memory_available();

// The environment a process was started with. Variables that it may not show to us are absent.
class Environment {
 public:
  static Environment of(std::string_view pid);
  // text: NAME=VALUE, each with a zero byte behind it.
  explicit Environment(std::string_view text);
  std::optional<std::string_view> value(std::string_view name) const;

 private:
  std::string text_;  // the variables, each between two zero bytes
};

}  // namespace sweep::proc
