// The script of a fake rank, played on a real heartbeat page with real files.
#include "fake_trial.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "base/time.h"
#include "runtime/early_stop.h"
#include "runtime/store_client.h"
#include "schema/codec.h"
#include "schema/progress.h"
#include "schema/spool.h"

namespace sweep::fake {

namespace {

using nlohmann::json;

struct Script {
  std::string outcome = "ok";
  std::string phase = "step";
  double step_ms = 1;
  i64 bytes = 64 << 20;
  std::optional<i64> waits_percent{};
};

struct Numbered {
  const char *outcome, *phase;
};
// Outcomes by number, for grids: labels there are numbers.
constexpr std::array kByNumber{
    Numbered{"ok", "step"},          Numbered{"oom", "step"},
    Numbered{"crash_exit", "step"},  Numbered{"exception", "build"},
    Numbered{"unsupported", "init"}, Numbered{"hang_ignore_sigterm", "step"},
    Numbered{"double_fork", "step"}, Numbered{"bare_daemon", "step"},
    Numbered{"huge_log", "step"},    Numbered{"crash_signal", "first_step"},
    Numbered{"hang", "step"},        Numbered{"real", "start"},
};

Script script_of(const Attempt& attempt, i64 rank) {
  Script out;
  const json labels = json::parse(attempt.trial.labels, nullptr, false);
  if (!labels.is_object() || !labels.contains("fake")) return out;
  const json& fake = labels["fake"];
  if (!fake.is_object()) {  // from a grid's `derive`: a number, an index into kByNumber
    const auto index = fake.is_number_integer() ? fake.get<std::size_t>() : 0;
    out.step_ms = labels.value("fake_step_ms", 1.0);
    const i64 only = labels.value("fake_rank", i64{-1});
    if (labels.contains("fake_waits_percent"))
      out.waits_percent = only == rank ? 0 : labels["fake_waits_percent"].get<i64>();
    if (index >= kByNumber.size()) return out;
    const bool plays = only < 0 || only == rank || std::strcmp(kByNumber[index].outcome, "real") == 0;
    if (plays) out.outcome = kByNumber[index].outcome, out.phase = kByNumber[index].phase;
    return out;
  }
  out.step_ms = fake.value("step_ms", 1.0);
  out.bytes = fake.value("bytes", out.bytes);
  const i64 only = fake.value("rank", i64{-1});
  if (only >= 0 && only != rank) return out;
  out.outcome = fake.value("outcome", "ok");
  out.phase = fake.value("phase", "step");
  return out;
}

void sleep_ms(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

[[noreturn]] void hang() {
  while (true) ::pause();
}

// Into the log: what a test sets in the environment of ranks.
void say_variables() {
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, "SAID_", 5) == 0) std::printf("%s\n", *entry);
}

std::string devices() {
  const char* listed = std::getenv("CUDA_VISIBLE_DEVICES");
  return listed == nullptr ? "" : listed;
}

std::vector<i64> cores() {
  cpu_set_t own;
  std::vector<i64> out;
  if (::sched_getaffinity(0, sizeof own, &own) != 0) return out;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &own)) out.push_back(core);
  return out;
}

// A daemon that left its session, group and parent, and ignores SIGTERM.
void leave_daemon(bool bare) {
  if (::fork() == 0) {
    ::setsid();
    if (::fork() == 0) {
      ::signal(SIGTERM, SIG_IGN);
      if (bare) {
        const char* argv[] = {"sleep", "1000", nullptr};
        char* none[] = {nullptr};
        ::execve("/bin/sleep", const_cast<char**>(argv), none);
      }
      hang();
    }
    ::_exit(0);
  }
}

class FakeTrial {
 public:
  FakeTrial(const RankLaunch& launch, Attempt attempt)
      : launch_(launch), attempt_(std::move(attempt)), script_(script_of(attempt_, launch.rank)) {
    record_.attempt = attempt_.id;
    record_.rank = launch.rank;
    record_.effective.backend = "fake", record_.effective.devices = devices();
    record_.effective.cores = cores();
    if (script_.outcome == "hang_ignore_sigterm")
      ::signal(SIGTERM, SIG_IGN);  // before its first sign of life
    map_page();
  }

  int run() {
    if (script_.outcome == "real") become_real();
    enter(Phase::kInit);
    enter(Phase::kBuild);
    enter(Phase::kFirstStep);
    if (attempt_.trial.workload == Workload::kScreen) record_.effective.screen = screened();
    if (const char* words = std::getenv("SWEEP_FAKE_NCCL"); words != nullptr) leave_nccl_words(words);
    wait_at_gate();
    steps();
    wait_for_peers();
    enter(Phase::kReport);
    if (script_.outcome == "no_record") return 0;
    if (script_.outcome == "double_fork" || script_.outcome == "bare_daemon")
      leave_daemon(script_.outcome == "bare_daemon");
    record_.phase = Phase::kDone;
    return write_record(Outcome::kOk, "");
  }

 private:
  // The genuine sweep-rank beside this program takes over: same process, same group, same mark.
  [[noreturn]] void become_real() const {
    const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sweep-rank";
    const std::string launch = dump(to_json(launch_));
    ::execl(program.c_str(), program.c_str(), "run", "--launch", launch.c_str(), nullptr);
    std::fprintf(stderr, "fake_rank: %s: %s\n", program.c_str(), std::strerror(errno));
    ::_exit(9);
  }

  // The figures that a look at the node would measure, times SWEEP_FAKE_SLOW="RANK FACTOR" on that rank.
  ScreenFindings screened() const {
    double factor = 1;
    if (const char* slow = std::getenv("SWEEP_FAKE_SLOW"); slow != nullptr) {
      char* rest = nullptr;
      if (std::strtoll(slow, &rest, 10) == launch_.rank) factor = std::strtod(rest, nullptr);
    }
    ScreenFindings out{100 * factor, 10 * factor, {}};
    for (i64 peer = 0; peer < launch_.world; ++peer)
      if (peer != launch_.rank) out.links.emplace_back(peer, 1.0);
    return out;
  }

  // Writes the log that NCCL would write with NCCL_DEBUG_FILE.
  void leave_nccl_words(const char* words) const {
    std::ofstream(spool::nccl_log(launch_.attempt_dir, launch_.rank)) << words << "\n";
  }

  void map_page() {
    const auto path = spool::rank_progress(launch_.attempt_dir, launch_.rank);
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* at = fd < 0 ? MAP_FAILED
                      : ::mmap(nullptr, sizeof(ProgressPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
      std::fprintf(stderr, "fake_rank: no progress page %s\n", path.c_str());
      ::_exit(9);
    }
    ::close(fd);
    page_ = static_cast<ProgressPage*>(at);
    page_->magic = kProgressMagic;
  }

  void enter(Phase phase) {
    const std::string name(to_string(phase));
    record_.phase = phase;
    page_->phase = static_cast<std::uint32_t>(phase);
    page_->beats++;
    std::printf("rank %lld enters %s\n", static_cast<long long>(launch_.rank), name.c_str());
    std::fflush(stdout);
    if (script_.phase == name) misbehave();
  }

  // With SWEEP_FAKE_GATE a rank stands here, alive, until the folder of that name lets it pass: a file `open`
  // lets all pass, any other file is a ticket for one rank, who removes it. So a test says how far its trials
  // come, whatever the machine's speed.
  void wait_at_gate() {
    const char* gate = std::getenv("SWEEP_FAKE_GATE");
    while (gate != nullptr && !passes(gate)) {
      page_->beats++;
      sleep_ms(5);
    }
  }

  static bool passes(const std::filesystem::path& gate) {
    std::error_code ec;
    if (std::filesystem::exists(gate / "open", ec)) return true;
    // `open` may be made at this instant: it is no ticket, or the gate would close for all others.
    for (const auto& ticket : std::filesystem::directory_iterator(gate, ec))
      if (ticket.path().filename() != "open" && ::unlink(ticket.path().c_str()) == 0) return true;
    return false;
  }

  void steps() {
    const i64 count = attempt_.measure.warmup_steps + attempt_.measure.steps;
    EarlyStop early(launch_.world == 1 ? attempt_.stop_above_ms : std::nullopt);
    for (i64 done = 0; done < count * attempt_.measure.repeats && !early.is_clear(); ++done) {
      const i64 i = done % count;
      const bool warmup = i < attempt_.measure.warmup_steps;
      page_->step = static_cast<std::uint64_t>(done + 1);
      record_.step = i;
      if (done > 0) enter(warmup ? Phase::kWarmup : Phase::kStep);
      const auto from = std::chrono::steady_clock::now();
      sleep_ms(script_.step_ms);
      StepSample sample;
      sample.repeat = done / count;
      sample.step = i;
      sample.warmup = warmup;
      sample.step_ns = (std::chrono::steady_clock::now() - from).count();
      if (script_.waits_percent) sample.exposed_comm_ns = sample.step_ns / 100 * *script_.waits_percent;
      sample.tokens = attempt_.trial.seq_len * attempt_.trial.micro_batch_size;
      sample.loss = script_.outcome == "nan_loss" ? std::nan("") : 20.0 - 0.1 * static_cast<double>(i);
      record_.samples.push_back(sample);
      if (!warmup) early.add(sample.step_ns);
    }
    if (script_.outcome == "nan_loss") {
      write_record(Outcome::kInvalid, "the loss is not finite");
      ::_exit(0);
    }
  }

  // A collective: no rank leaves before all have come. A peer that died keeps the others here for good.
  void wait_for_peers() {
    page_->part = static_cast<std::uint32_t>(Part::kCommunication);
    page_->collective++;
    if (launch_.store.empty())
      meet_in_folder();
    else
      meet_in_store();
    page_->collective_done++;
    page_->part = static_cast<std::uint32_t>(Part::kNone);
  }

  void meet_in_folder() const {
    namespace fs = std::filesystem;
    const fs::path here(launch_.rendezvous_dir);
    const int fd =
        ::open((here / std::to_string(launch_.rank)).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ::close(fd);
    for (i64 peer = 0; peer < launch_.world; ++peer)
      while (!fs::exists(here / std::to_string(peer))) sleep_ms(1);
  }

  // Across nodes. A store that fails is a peer that is gone.
  void meet_in_store() {
    const auto long_enough = std::chrono::hours(24);
    auto store = StoreClient::connect(launch_.store);
    Expected<void> met = store ? store->set(std::to_string(launch_.rank), launch_.address, long_enough)
                               : tl::unexpected(store.error());
    for (i64 peer = 0; met && peer < launch_.world; ++peer)
      met = store->get(std::to_string(peer), long_enough).map([&](const std::string& address) {
        std::printf("rank %lld is at %s\n", static_cast<long long>(peer), address.c_str());
      });
    if (met) return;
    record_.consequential = true;
    ::_exit(write_record(Outcome::kCrash, met.error().message));
  }

  void misbehave() {
    const std::string& what = script_.outcome;
    if (what == "oom") {
      record_.oom_kind = OomKind::kDevice;
      record_.oom_asked_bytes = 1 << 30;
      ::_exit(write_record(Outcome::kOom, "out of memory: asked for 1 GiB"));
    }
    if (what == "exception") ::_exit(write_record(Outcome::kCrash, "std::runtime_error: scripted"));
    if (what == "unsupported") ::_exit(write_record(Outcome::kUnsupported, "scripted"));
    if (what == "crash_exit") {
      std::fprintf(stderr, "scripted exit with code 3, bad byte \xff here\n");
      ::_exit(3);
    }
    if (what == "crash_signal") {
      ::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would exit instead
      ::raise(SIGSEGV);
    }
    if (what == "hang" || what == "hang_ignore_sigterm") hang();
    if (what == "host_oom") eat_memory();
    if (what == "huge_log" && !logged_) huge_log();
    if (what == "bad_record") {
      const auto path = spool::rank_record(launch_.attempt_dir, launch_.rank);
      (void)files::write_atomically(path, "{\"rank\": \"zero\", [[[");
      ::_exit(0);
    }
    if (what == "record_then_hang") {
      write_record(Outcome::kOk, "");
      hang();
    }
  }

  void eat_memory() {
    const auto size = static_cast<std::size_t>(script_.bytes);
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) std::memset(at, 1, size);
  }

  void huge_log() {
    logged_ = true;
    const std::string row(1023, 'x');
    for (i64 i = 0; i < script_.bytes / 1024; ++i) {
      std::printf("%s\n", row.c_str());
      page_->beats++;
    }
    std::printf("the last line\n");
    std::fflush(stdout);
  }

  int write_record(Outcome outcome, const std::string& message) {
    record_.outcome = outcome;
    record_.message = message;
    record_.ended_unix_ns = unix_ns_now();
    record_.host_peak_rss_bytes = 1 << 20;
    const auto path = spool::rank_record(launch_.attempt_dir, launch_.rank);
    const auto written = files::write_atomically(path, dump(to_json(record_)));
    if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
    page_->phase = static_cast<std::uint32_t>(Phase::kDone);
    page_->beats++;
    return exit_code_of(written);
  }

  const RankLaunch& launch_;
  const Attempt attempt_;
  const Script script_;
  RankRecord record_;
  ProgressPage* page_ = nullptr;
  bool logged_ = false;
};

}  // namespace

int run_trial(const RankLaunch& launch) {
  say_variables();
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const auto bytes = files::read_existing(launch.attempt_file);
  const auto parsed = bytes ? parse_json(*bytes) : tl::unexpected(bytes.error());
  auto attempt = parsed ? from_json<Attempt>(*parsed) : tl::unexpected(parsed.error());
  if (!attempt) {
    std::fprintf(stderr, "fake_rank: %s\n", attempt.error().message.c_str());
    return 9;
  }
  return FakeTrial(launch, std::move(*attempt)).run();
}

}  // namespace sweep::fake
