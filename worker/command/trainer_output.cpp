#include "worker/command/trainer_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/time.h"

namespace sweep::command {
namespace {

constexpr std::size_t kReadAtOnce = 1u << 20;
constexpr std::uint64_t kFreeEvery = 16u << 20;  // bytes read until their room on the disk is given back
constexpr double kLookSeconds = 0.25;            // a look may take; the rank shows no progress meanwhile

// A hole keeps the offsets of writers and of this reader; file systems without holes keep the bytes.
void free_what_was_read(GrowingFile& file) {
  const Descriptor to(::open(file.path.c_str(), O_WRONLY | O_CLOEXEC));
  if (to.get() >= 0)
    ::fallocate(to.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(file.read));
  file.freed = file.read;
}

// False: there is more.
bool read_results(GrowingFile& file, TrainerReport& report, double until_s) {
  while (steady_s() < until_s) {
    const auto bytes = files::read_from(file.path, file.read, kReadAtOnce);
    if (!bytes || bytes->empty()) return true;
    report.feed(*bytes);
    file.read += bytes->size();
    if (file.read - file.freed >= kFreeEvery) free_what_was_read(file);
  }
  return false;
}

// The agent cuts the middle out of a log that is longer than its limit: by a hole, or, on file systems without holes,
// by making the file shorter. True: bytes are missing before the place where reading goes on.
bool pass_over_what_was_cut(GrowingFile& file, int fd, std::uint64_t size) {
  std::uint64_t next = size;
  if (size > file.read) {
    const off_t data = ::lseek(fd, static_cast<off_t>(file.read), SEEK_DATA);
    next = data < 0 ? size : static_cast<std::uint64_t>(data);
  }
  if (next == file.read) return false;
  file.missing += next > file.read ? next - file.read : 0;
  file.read = next;
  return true;
}

}  // namespace

Expected<TrainerOutput> TrainerOutput::open(std::filesystem::path results, std::filesystem::path log,
                                            const CommandSpec& spec, bool finds_steps) {
  TrainerOutput out;
  out.results_.path = std::move(results);
  out.log_.path = std::move(log);
  if (spec.log_patterns.empty() || !finds_steps) return out;
  SWEEP_GET(auto patterns, LogPatterns::compile(spec.log_patterns));
  out.patterns_.emplace(std::move(patterns));
  return out;
}

bool TrainerOutput::look() {
  const double until_s = steady_s() + kLookSeconds;
  const bool results = read_results(results_, report_, until_s);
  const bool log = !patterns_ || read_log(until_s);
  tell_report();
  return results && log;
}

void TrainerOutput::finish() {
  if (!patterns_) return;
  patterns_->finish();
  tell_report();
}

bool TrainerOutput::read_log(double until_s) {
  const Descriptor file(::open(log_.path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(kReadAtOnce, '\0');
  while (steady_s() < until_s) {
    struct stat now {};
    if (file.get() < 0 || ::fstat(file.get(), &now) != 0) return true;
    const auto size = static_cast<std::uint64_t>(now.st_size);
    if (size == log_.read) return true;
    if (pass_over_what_was_cut(log_, file.get(), size)) patterns_->gap();
    if (size <= log_.read) return true;
    const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(log_.read));
    if (got <= 0) return true;
    patterns_->feed(std::string_view(bytes).substr(0, static_cast<std::size_t>(got)));
    log_.read += static_cast<std::uint64_t>(got);
  }
  return false;
}

void TrainerOutput::tell_report() {
  if (!patterns_) return;
  for (const TrainerStep& step : patterns_->take_steps()) report_.add_logged(step);
  report_.set_logged_run(patterns_->summary(), patterns_->peak_reserved_bytes());
}

bool TrainerOutput::log_has_grown() {
  const std::uint64_t size = files::size_of(log_.path);
  return size != std::exchange(log_bytes_seen_, size);
}

void TrainerOutput::describe(EffectiveSettings& effective) const {
  effective.report = report_.is_from_log() ? "from_log" : report_.has_begun() ? "lines" : "none";
  effective.steps = std::max<i64>(report_.last_step(), 0);
  effective.other_steps = report_.identity().other_steps;
  effective.damaged_lines = report_.damaged();
  if (patterns_)
    effective.log = LogFindings{patterns_->lines(), patterns_->matches(), static_cast<i64>(log_.missing)};
}

}  // namespace sweep::command
