// sweep calibrate: measures matrix products, memory, launches and collectives on an allocation, and keeps
// them as a hardware profile by which `sweep plan` and `sweep predict` compute. With --only collectives it is
// a network benchmark.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "base/fail.h"
#include "base/files.h"
#include "base/input_file.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/kernel_table.h"
#include "orchestrator/answers/charts/bandwidth.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/prices.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/calibration.h"
#include "schema/hardware_kinds.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

struct CalibrateCommand {
  driver::SelfTestRequest request;
  driver::CalibrationSetup setup;
  i64 ranks = 0;
  std::vector<std::string> only, backends{"auto"};
  std::optional<i64> largest_bytes;
  std::optional<double> hang_seconds;
  std::string name, out, heatmap, kernels_out, kernels_from, removed;
  bool kernels = false;
  bool json = false, quiet = false;
};

constexpr i64 kGpuLargestBytes = i64{256} << 20;
constexpr std::size_t kMostTableBytes = std::size_t{16} << 20;

Expected<void> complete(CalibrateCommand& o) {
  SWEEP_GET(const auto hardware, shape::find_hardware(o.setup.hardware));
  if (is_mixed(o.setup.hardware))
    return fail(
        ErrorKind::kUnsupported, o.setup.hardware,
        fmt::format("'{}' is several kinds of GPU, and a profile is one kind's: calibrate {} each by itself",
                    o.setup.hardware, fmt::join(kinds_of(o.setup.hardware), " and ")));
  const bool on_cpu = hardware.gpu.empty();
  o.setup.ranks_per_node = o.ranks > 0 ? o.ranks : on_cpu ? 2 : hardware.gpus_per_node;
  if (!on_cpu) {
    o.setup.precisions = {"fp32", "bf16"};
    if (!hardware.peak_for(Precision::kBf16)) o.setup.precisions.back() = "fp16";
    o.setup.largest_bytes = kGpuLargestBytes;
  }
  o.setup.largest_bytes = o.largest_bytes.value_or(o.setup.largest_bytes);
  if (o.setup.largest_bytes < o.setup.smallest_bytes) return fail("--min-bytes is above --max-bytes");
  const auto asked = [&](const char* part) {
    return o.only.empty() || std::ranges::find(o.only, part) != o.only.end();
  };
  o.setup.machine = asked("machine"), o.setup.collectives = asked("collectives");
  o.setup.kernels = o.kernels || std::ranges::find(o.only, "kernels") != o.only.end();
  o.setup.backends.clear();
  for (const auto& word : o.backends) {
    o.setup.backends.push_back(*choice_from<CommBackend>(word));
    if (o.setup.backends.back() == CommBackend::kShm && (o.setup.nodes > 1 || !on_cpu))
      return fail("--backend shm is for CPU ranks of one node; gloo and nccl go across nodes");
  }
  if (driver::calibration_trials(o.setup).empty())
    return fail("there is nothing to measure: collectives need at least two ranks (--ranks, --nodes)");
  if (o.name.empty()) o.name = o.setup.hardware;
  if (o.request.db.empty()) o.request.db = driver::calibration_db().string();
  return {};
}

Expected<void> keep(Io& io, const CalibrateCommand& o, const shape::HardwareProfile& p) {
  if (o.kernels_from.empty() && std::getenv("SWEEP_PHANTOM") != nullptr) {
    if (!o.kernels_out.empty()) SWEEP_TRY(write_output(io, o.kernels_out, shape::kernel_table(p)));
    io.err << "no profile was stored: phantom GPUs measure nothing\n";
    return {};
  }
  std::error_code ec;
  std::filesystem::create_directories(std::filesystem::path(o.request.db).parent_path(),
                                      ec);  // opening says why not
  SWEEP_GET(auto store, store::Store::open(o.request.db, store::Mode::kReadWrite));
  const std::string text = shape::to_json(p);
  SWEEP_TRY(store->save_hardware_profile({p.name, p.hardware, 0, text}));
  if (!o.out.empty()) SWEEP_TRY(write_output(io, o.out, text));
  if (!o.heatmap.empty()) SWEEP_TRY(write_output(io, o.heatmap, answers::bandwidth_svg(p)));
  if (!o.kernels_out.empty()) SWEEP_TRY(write_output(io, o.kernels_out, shape::kernel_table(p)));
  io.err << fmt::format("profile '{}' is stored in {}\n", answers::safe_text(p.name),
                        answers::safe_text(o.request.db));
  return {};
}

// A new measurement of one part leaves the other parts of an earlier profile as they are.
Expected<void> keep_other_part(const CalibrateCommand& o, shape::HardwareProfile& p) {
  SWEEP_GET(const auto stored, driver::stored_profiles(o.request.db));
  for (const auto& before : stored) {
    if (before.name != o.name || before.hardware != p.hardware) continue;
    if (!o.setup.machine) p.matmul = before.matmul, p.copies = before.copies, p.launch_s = before.launch_s;
    if (!o.setup.collectives) p.collectives = before.collectives;
    auto kernels = before.kernels;
    shape::add_kernels(kernels, p.kernels);
    p.kernels = std::move(kernels);
  }
  p.fit();
  return {};
}

// Nothing is measured: the rows of a kernel table go into the profile that is there, else into a new one.
int import_kernels(Io& io, CalibrateCommand o) {
  const auto csv = read_input(o.kernels_from, kMostTableBytes, Streams::kTaken);
  if (!csv) return refuse(io, csv.error());
  auto rows = shape::read_kernel_table(csv->bytes, o.setup.hardware);
  if (!rows) return refuse(io, retold(rows.error(), csv->shown_as + ": " + rows.error().message));
  const auto stored = driver::stored_profiles(o.request.db);
  if (!stored) return refuse(io, stored.error());
  const auto before = std::ranges::find_if(
      *stored, [&](const auto& each) { return each.name == o.name && each.hardware == o.setup.hardware; });
  shape::HardwareProfile p;
  p.name = o.name, p.hardware = o.setup.hardware, p.date = answers::today();
  if (before != stored->end()) p = *before;
  shape::add_kernels(p.kernels, *rows);
  io.err << fmt::format("{} kernel times of {} are read from {}\n", rows->size(), p.hardware,
                        answers::safe_text(csv->shown_as));
  if (auto done = keep(io, o, p); !done) return refuse(io, done.error());
  return kAnswered;
}

// A database whose profile cannot be read any more is no obstacle.
Expected<bool> removed_from(const std::string& db, const std::string& name) {
  if (std::error_code ec; !std::filesystem::exists(db, ec)) return false;
  SWEEP_GET(auto store, store::Store::open(db, store::Mode::kReadWrite));
  return store->remove_hardware_profile(name);
}

int remove_profile(Io& io, const CalibrateCommand& o) {
  const auto db = o.request.db.empty() ? driver::calibration_db().string() : o.request.db;
  const auto removed = removed_from(db, o.removed);
  if (!removed) return refuse(io, removed.error());
  if (!*removed) {
    std::vector<std::string> known;
    if (const auto stored = driver::stored_profiles(db))
      for (const auto& each : *stored) known.push_back(each.name);
    return refuse(io, {fmt::format("{} has no profile '{}'; it has: {}", db, o.removed,
                                   known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))),
                       ErrorKind::kUnknownName, o.removed});
  }
  io.err << fmt::format("profile '{}' is removed from {}\n", answers::safe_text(o.removed),
                        answers::safe_text(db));
  return kAnswered;
}

int calibrate(Io& io, CalibrateCommand o) {
  if (!o.removed.empty()) return remove_profile(io, o);
  if (auto done = complete(o); !done) return refuse(io, done.error());
  if (!o.kernels_from.empty()) return import_kernels(io, std::move(o));
  auto report = driver::run_calibration(o.request, o.setup, o.hang_seconds, progress_lines(io, o.quiet));
  if (!report) return refuse(io, report.error());
  shape::HardwareProfile& p = report->profile;
  p.name = o.name, p.build = std::string(kVersion) + " " + kBuild;
  p.date = answers::today();
  if (o.json)
    io.out << shape::to_json(p);
  else
    io.out << (o.setup.machine ? answers::machine_text(p) : "") << answers::network_text(p);
  for (const auto& failure : report->failures) io.err << answers::safe_text(failure) << "\n";
  if (!report->why.empty()) io.err << answers::safe_text(report->why) << "\n";
  if (!report->failures.empty() || !report->why.empty()) {
    io.err << "no profile was stored: a measurement is missing or wrong\n";
    return kUnanswered;
  }
  if (auto done = keep_other_part(o, p); !done) return refuse(io, done.error());
  if (auto done = keep(io, o, p); !done) return refuse(io, done.error());
  return kAnswered;
}

void add_kernel_options(CLI::App& c, CalibrateCommand& o) {
  auto* kernels = c.add_flag("--kernels", o.kernels,
                             "measure attention and more products too, for rehearsals' kernel times");
  c.add_option("--import-kernels", o.kernels_from,
               "measure nothing; take kernel times from a table: operator,shape,type,gpu,us")
      ->type_name("FILE.csv")
      ->excludes(kernels);
  c.add_option("--kernels-out", o.kernels_out, "write the profile's kernel table to this file too")
      ->type_name("FILE.csv");
}

}  // namespace

void add_calibrate(Registry r) {
  auto* c = r.app.add_subcommand(
      "calibrate",
      "measure matrix products, memory and collectives of a machine or allocation; store a profile");
  auto o = std::make_shared<CalibrateCommand>();
  add_selftest_options(*c, o->request);
  c->add_option("--db", o->request.db,
                "database of the runs and profiles; absent: calibrate.db in the user's state folder")
      ->type_name("FILE");
  c->add_option("--hardware", o->setup.hardware, "hardware of the ranks, a name of the catalogue")
      ->capture_default_str();
  c->add_option("--nodes", o->setup.nodes, "nodes that the largest group spans")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  c->add_option("--ranks", o->ranks, "ranks on each node; absent: the hardware's GPUs, 2 on CPU")
      ->check(CLI::Range(1, 1024));
  c->add_option("--threads", o->setup.threads, "threads of a rank on CPU")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c->add_option("--backend", o->backends,
                "communication backends, separated by commas: auto, shm, gloo, nccl")
      ->delimiter(',')
      ->check(CLI::IsMember({"auto", "shm", "gloo", "nccl"}))
      ->capture_default_str();
  c->add_option("--only", o->only, "only these parts, separated by commas: machine, collectives, kernels")
      ->delimiter(',')
      ->check(CLI::IsMember({"machine", "collectives", "kernels"}));
  add_kernel_options(*c, *o);
  c->add_option("--min-bytes", o->setup.smallest_bytes, "smallest message")
      ->check(CLI::Range(i64{4}, i64{1} << 40))
      ->capture_default_str();
  c->add_option("--max-bytes", o->largest_bytes, "largest message; absent: 16 MiB on CPU, 256 MiB on GPUs")
      ->check(CLI::Range(i64{4}, i64{1} << 40));
  c->add_option("--seconds", o->setup.item_s, "about how long each measurement takes")
      ->check(CLI::Range(0.0001, 60.0))
      ->capture_default_str();
  c->add_option("--hang-seconds", o->hang_seconds,
                "end an attempt after so long without progress; absent: 60 s")
      ->check(above_zero());
  c->add_option("--name", o->name,
                "name of the profile; absent: that of the hardware, and plans for it use it");
  c->add_option("--remove", o->removed, "measure nothing; remove the stored profile of this name")
      ->type_name("NAME");
  c->add_option("--out", o->out, "write the profile to this file too")->type_name("FILE.json");
  c->add_option("--heatmap", o->heatmap, "draw the bandwidth by size and group")->type_name("FILE.svg");
  c->add_flag("--json", o->json, "print the profile as JSON");
  c->add_flag("--quiet", o->quiet, "print no progress, only the tables");
  c->callback([r, o] { r.chosen = [r, o] { return calibrate(r.io, *o); }; });
}

}  // namespace sweep::cli
