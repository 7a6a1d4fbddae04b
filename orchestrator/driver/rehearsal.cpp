#include "orchestrator/driver/rehearsal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/proc.h"
#include "base/text.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/kernel_table.h"
#include "orchestrator/driver/calibration.h"
#include "orchestrator/driver/rehearsal_check.h"
#include "orchestrator/launch/local/local.h"
#include "orchestrator/plan/rehearsal.h"
#include "schema/command_spec.h"
#include "schema/hardware_kinds.h"
#include "schema/rehearsal.h"

namespace sweep::driver {
namespace {

namespace fs = std::filesystem;
constexpr i64 kMostGpus = 16;  // limit of a phantom node
// Memory of a Python process with PyTorch that it shares with no other (Megatron-LM's, 2026-11-27: 434 MiB).
constexpr i64 kProgramBytes = i64{450} << 20;
// Megatron-LM's option (megatron/training/arguments.py) by which data-parallel ranks are the outermost, not stages.
constexpr std::string_view kStagesInside = "--use-tp-pp-dp-mapping";

std::string shared_prefix() {
  return fmt::format("/dev/shm/sweep-rehearsal-{}-", ::geteuid());
}

// Its descriptor; -1: another process holds it, or it is not ours.
int held(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

// The folder that the phantom GPUs of one rehearsal share; it is removed with the rehearsal. Its lock ends
// with this process: the next rehearsal removes what a killed one left.
class SharedFolder {
 public:
  SharedFolder() {
    std::error_code ec;
    for (const auto& folder : folders_of_killed_rehearsals()) fs::remove_all(folder, ec);
    std::string made = shared_prefix() + "XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) return;  // the phantoms then share files in /dev/shm itself
    path_ = made;
    lock_ = held(path_);
  }
  ~SharedFolder() {
    std::error_code ec;
    if (!path_.empty()) fs::remove_all(path_, ec);
    if (lock_ >= 0) ::close(lock_);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  int lock_ = -1;
};

// The environment in which a process finds phantom GPUs of this kind instead of a driver (docs/phantom.md).
std::vector<std::string> environment_for(const shape::Hardware& hardware, const SharedFolder& shared) {
  const auto dir = phantom_dir();
  // Programs that were moved find their own libraries by it.
  const char* searched = std::getenv("LD_LIBRARY_PATH");
  const nlohmann::json device = {{"hardware", hardware.name},
                                 {"name", hardware.gpu},
                                 {"gpus", kMostGpus},
                                 {"memory_bytes", hardware.memory_bytes.value_or(0)},
                                 {"multiprocessors", hardware.multiprocessors},
                                 {"compute_capability", hardware.compute_capability},
                                 {"memory_bandwidth", hardware.memory_bandwidth},
                                 {"peak_flops", hardware.peak_flops},
                                 {"intra_node_bandwidth", hardware.intra_node_bandwidth},
                                 {"inter_node_bandwidth", hardware.inter_node_bandwidth}};
  std::string all;  // whatever GPUs this process may use
  for (i64 gpu = 0; gpu < kMostGpus; ++gpu) all += fmt::format("{}{}", gpu > 0 ? "," : "", gpu);
  std::vector<std::string> out = {
      "CUDA_VISIBLE_DEVICES=" + all, "LD_PRELOAD=" + (dir / "libsweep_phantom.so").string(),
      "LD_LIBRARY_PATH=" + dir.string() + (searched != nullptr ? fmt::format(":{}", searched) : ""),
      fmt::format("SWEEP_PHANTOM_NODE=rehearsal-{}", ::getpid()),
      "SWEEP_REHEARSE=1"};  // a GPU that this build has no code for may be rehearsed
  if (!shared.path().empty()) out.push_back("SWEEP_PHANTOM_SHARED=" + shared.path().string());
  // A description that the user gave is kept.
  if (std::getenv("SWEEP_PHANTOM") == nullptr) out.push_back("SWEEP_PHANTOM=" + device.dump());
  return out;
}

// The kernel table of the profile that `sweep calibrate` stored for each hardware, as a file for its phantoms.
// One that the user names stays.
std::map<std::string, std::string> kernel_tables(const SharedFolder& shared) {
  std::map<std::string, std::string> out;
  if (std::getenv("SWEEP_PHANTOM_KERNELS") != nullptr || shared.path().empty()) return out;
  const auto profiles = stored_profiles(calibration_db());
  if (!profiles) return out;  // the plan has said why they cannot be read
  for (const auto& profile : *profiles) {
    if (profile.name != profile.hardware) continue;
    const auto file = shared.path() / fmt::format("kernels-{}.csv", profile.hardware);
    if (files::write_atomically(file, shape::kernel_table(profile))) out[profile.hardware] = file.string();
  }
  return out;
}

// Why one rank of each pipeline stage cannot stand for all ranks of a command; nullopt: it can.
std::optional<std::string> not_by_roles(const Trial& trial, i64 most) {
  const auto alone = command_from(trial.program).and_then(without_launcher);
  if (!alone) return alone.error().message;
  if (trial.pp > 1 && std::ranges::find(alone->argv, kStagesInside) != alone->argv.end())
    return fmt::format(
        "{}: its pipeline stages are no blocks of successive ranks, of which a rehearsal of more than {} "
        "ranks starts the first",
        kStagesInside, most);
  return std::nullopt;
}

// Why this machine's memory, of which so much is free, does not hold the processes of so many ranks, or what the host of
// a trial updates; nullopt: it does.
std::optional<std::string> host_too_small(const Trial& trial, i64 ranks, i64 most, std::optional<i64> free) {
  if (!free) return std::nullopt;
  if (trial.workload == Workload::kCommand && ranks * kProgramBytes > *free)
    return fmt::format("{} processes take about {} each, and this machine has {} free; free some{}", ranks,
                       human_bytes(kProgramBytes), human_bytes(static_cast<double>(*free)),
                       ranks > trial.pp ? ", or lower --rehearse-ranks" : "");
  if (trial.workload != Workload::kStep) return std::nullopt;
  const double needs = plan::rehearsed_host_bytes(trial, most);
  if (needs <= static_cast<double>(*free)) return std::nullopt;
  return fmt::format(
      "offload {}: the states that the host updates take {} of this machine's memory in a rehearsal, which "
      "has {} free; use fewer --rehearse-ranks, more dp with zero, or offload disk",
      trial.offload, human_bytes(needs), human_bytes(static_cast<double>(*free)));
}

// Why a trial cannot be rehearsed here; nullopt: it can.
std::optional<std::string> not_rehearsed(const Trial& trial, i64 most, std::optional<i64> free) {
  if (trial.hardware == "cpu")
    return "hardware: cpu has no GPU to rehearse; `sweep run` runs it on this machine";
  if (is_mixed(trial.hardware))
    return "hardware: a rehearsal has phantom GPUs of one kind; rehearse each kind by itself";
  const auto ranks = plan::rehearsed_ranks(trial, most);
  if (ranks && static_cast<i64>(ranks->size()) > kMostGpus)
    return fmt::format("a rehearsal needs a rank for each of {} pipeline stages, and has {} phantom GPUs",
                       trial.pp, kMostGpus);
  if (trial.workload == Workload::kCommand && trial.world() > most)
    if (auto why = not_by_roles(trial, most)) return why;
  return ranks ? host_too_small(trial, static_cast<i64>(ranks->size()), most, free) : std::nullopt;
}

// The launcher of rehearsals: this machine plays any number of nodes with phantom GPUs.
class RehearsalConfig final : public launch::LaunchConfig {
 public:
  Expected<launch::SlotLimit> slot_limit(i64) const override { return launch::SlotLimit{}; }
  Expected<launch::RunLimits> prepare(const launch::RunRequest&) override {
    shared_ = std::make_unique<SharedFolder>();
    launch::RunLimits limits;  // one trial at a time: its ranks share this machine's cores
    limits.allocate_per_shape = true;
    return limits;
  }
  std::unique_ptr<launch::Launcher> make(boost::asio::io_context& io, const launch::Programs& programs,
                                         launch::Launcher::Sink sink) const override {
    launch::LocalOptions options{programs.agent, programs.rank, programs.zygote};
    const auto tables = kernel_tables(*shared_);
    for (const auto& hardware : shape::all_hardware()) {
      if (hardware.gpu.empty()) continue;
      auto& environment = options.rehearsal[hardware.name] = environment_for(hardware, *shared_);
      if (const auto table = tables.find(hardware.name); table != tables.end())
        environment.push_back("SWEEP_PHANTOM_KERNELS=" + table->second);
    }
    return launch::make_local(io, std::move(options), std::move(sink));
  }

 private:
  std::unique_ptr<SharedFolder> shared_;  // folder of the run that is prepared
};

}  // namespace

std::vector<fs::path> folders_of_killed_rehearsals() {
  std::vector<fs::path> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/dev/shm", ec)) {
    const int fd = entry.path().string().starts_with(shared_prefix()) ? held(entry.path()) : -1;
    if (fd < 0) continue;
    out.push_back(entry.path());
    ::close(fd);
  }
  return out;
}

Expected<void> make_rehearsal(Planned& planned, i64 most) {
  planned.grid.name = rehearsal_of(planned.grid.name);
  // How many steps a command makes is written in its words.
  const bool command = std::ranges::any_of(
      planned.entries, [](const PlanEntry& entry) { return entry.trial.workload == Workload::kCommand; });
  if (!command) planned.grid.measure = kRehearsalMeasure;
  planned.grid.limits.gpu_hours.reset();  // no GPU is held
  const auto free = proc::memory_available();
  bool any = false;
  std::string first;  // why the first admitted one is not rehearsed
  for (PlanEntry& entry : planned.entries) {
    if (!entry.admitted) continue;
    const auto why = not_rehearsed(entry.trial, most, free);
    if (why)
      entry.admitted = false, entry.verdict = Outcome::kPruned, entry.rule = "rehearsal", entry.reason = *why;
    any = any || entry.admitted;
    if (why && first.empty()) first = fmt::format("trial {}: {}", entry.id, *why);
  }
  if (any) return {};
  return fail(fmt::format("{}: no trial can be rehearsed: {}", planned.grid.path.string(),
                          first.empty() ? "each is pruned; `sweep plan` says why" : first));
}

Expected<LaunchChoice> rehearsal_choice(const LaunchRequest& request, std::span<const PlanEntry> entries,
                                        i64 ranks) {
  SWEEP_GET(const auto programs, programs_for(request, entries));
  if (const auto why = cannot_rehearse(rehearsal_facts(programs.rank), ranks))
    return tl::unexpected(retold(*why, "this machine cannot rehearse: " + why->message));
  LaunchChoice choice;
  choice.on = std::string(kRehearsalLauncher);
  choice.config = std::make_shared<RehearsalConfig>();
  return choice;
}

}  // namespace sweep::driver
