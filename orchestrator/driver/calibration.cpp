#include "orchestrator/driver/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/files.h"
#include "schema/calibration.h"
#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep::driver {
namespace {

constexpr double kCalibrationSeconds = 10, kPredictedItemMs = 3000;
const MeasurePlan kCalibrationMeasure{
    0, 60, 1};  // about as many measurements in an attempt; deadlines follow from it

// A model that divides over any group: nothing trains.
Trial trial_of(const CalibrationSetup& setup, i64 tp, i64 dp, const CalibrationRequest& request) {
  Trial t;
  t.workload = Workload::kCalibrate;
  t.hardware = setup.hardware;
  t.nodes = setup.nodes, t.gpus_per_node = setup.ranks_per_node, t.threads = setup.threads;
  t.tp = tp, t.dp = t.global_batch_size = dp;
  t.spec.layers = 1, t.spec.heads = t.spec.kv_heads = tp;
  t.spec.head_dim = 8, t.spec.hidden_size = 8 * tp, t.spec.intermediate_size = 16 * tp;
  t.spec.vocab_size = 32 * tp, t.seq_len = 8;
  t.program = to_text(request);
  return t;
}

// Ranks and nodes of the group that a trial measures.
struct Group {
  i64 ranks = 1, nodes = 1;
};
Group group_of(const Trial& t, const CalibrationRequest& request) {
  if (request.group == "dp") return {t.dp, t.nodes};
  return {t.tp, (t.tp + t.gpus_per_node - 1) / t.gpus_per_node};
}

void keep_slower(double& kept, double seconds) {
  kept = std::max(kept, seconds);
}

void add(shape::HardwareProfile& p, const CalibrationFindings& f) {
  keep_slower(p.launch_s, f.launch_s);
  for (const auto& row : f.matmul) {
    const auto same = std::ranges::find_if(p.matmul, [&](const MatmulTiming& r) {
      return std::tie(r.precision, r.m, r.n, r.k) == std::tie(row.precision, row.m, row.n, row.k);
    });
    same == p.matmul.end() ? p.matmul.push_back(row) : keep_slower(same->seconds, row.seconds);
  }
  for (const auto& row : f.kernels) {
    const auto same = std::ranges::find_if(p.kernels, [&](const KernelTiming& r) {
      return std::tie(r.op, r.shape, r.type) == std::tie(row.op, row.shape, row.type);
    });
    same == p.kernels.end() ? p.kernels.push_back(row) : keep_slower(same->seconds, row.seconds);
  }
  for (const auto& row : f.copies) {
    const auto same =
        std::ranges::find_if(p.copies, [&](const CopyTiming& r) { return r.bytes == row.bytes; });
    same == p.copies.end() ? p.copies.push_back(row) : keep_slower(same->seconds, row.seconds);
  }
}

void add(shape::HardwareProfile& p, const shape::CollectiveRow& row) {
  const auto same = std::ranges::find_if(p.collectives, [&](const shape::CollectiveRow& r) {
    return std::tie(r.kind, r.backend, r.ranks, r.nodes, r.bytes) ==
           std::tie(row.kind, row.backend, row.ranks, row.nodes, row.bytes);
  });
  if (same == p.collectives.end()) return p.collectives.push_back(row);
  keep_slower(same->seconds, row.seconds);
  same->wrong += row.wrong;
}

// Takes the result of one attempt: its findings into the profile, or the reason for none into the failures.
Expected<void> take(store::Store& store, i64 sweep, const PlanEntry& entry, CalibrationReport& out) {
  SWEEP_GET(const auto final, store.final_attempt(sweep, entry.id));
  if (!final) return out.failures.push_back(calibration_title(entry.trial) + ": no result"), Expected<void>();
  const auto result = store.result_of(*final);
  const auto reports = store.records_of(*final);
  if (!result) return tl::unexpected(result.error());
  if (!reports) return tl::unexpected(reports.error());
  const bool answered =
      *result && ((*result)->outcome == Outcome::kOk || (*result)->outcome == Outcome::kInvalid);
  if (!*result || (*result)->outcome != Outcome::kOk)
    out.failures.push_back(fmt::format(
        "{}: {}", calibration_title(entry.trial),
        *result ? fmt::format("{}: {}", to_string((*result)->outcome), (*result)->reason) : "no result"));
  if (!answered) return {};
  if (const auto added = add_findings(out.profile, entry.trial, reports->records); !added)
    out.failures.push_back(fmt::format("{}: {}", calibration_title(entry.trial), added.error().message));
  SWEEP_GET(auto hosts, hosts_of(store, sweep, entry.id, *final));
  out.profile.hosts = std::move(hosts);
  return {};
}

}  // namespace

std::vector<i64> group_sizes(const CalibrationSetup& setup) {
  const i64 world = setup.nodes * setup.ranks_per_node;
  std::vector<i64> out;
  for (i64 g = 2; g <= world; g *= 2)
    if (world % g == 0 && (setup.ranks_per_node % g == 0 || g % setup.ranks_per_node == 0)) out.push_back(g);
  for (const i64 whole : {setup.ranks_per_node, world})
    if (whole > 1 && std::ranges::find(out, whole) == out.end()) out.push_back(whole);
  std::ranges::sort(out);
  return out;
}

std::vector<Trial> calibration_trials(const CalibrationSetup& setup) {
  const i64 world = setup.nodes * setup.ranks_per_node;
  CalibrationRequest request;
  request.smallest_bytes = setup.smallest_bytes, request.largest_bytes = setup.largest_bytes;
  request.item_s = setup.item_s;
  std::vector<Trial> out;
  if (setup.machine || setup.kernels) {
    CalibrationRequest own = request;
    own.machine = setup.machine, own.kernels = setup.kernels, own.precisions = setup.precisions;
    out.push_back(trial_of(setup, 1, world, own));
  }
  if (!setup.collectives) return out;
  for (const CommBackend backend : setup.backends) {
    const auto over = [&](const char* group, i64 tp) {
      CalibrationRequest own = request;
      own.group = group;
      out.push_back(trial_of(setup, tp, world / tp, own));
      out.back().backend = backend;
    };
    for (const i64 g : group_sizes(setup)) over("tp", g);
    if (setup.nodes > 1 && setup.ranks_per_node > 1) over("dp", setup.ranks_per_node);
  }
  return out;
}

std::string calibration_title(const Trial& t) {
  const auto request = calibration_request_from(t.program);
  if (!request || request->machine || request->kernels) return "machine";
  const Group group = group_of(t, *request);
  return fmt::format("{} ranks on {} node{}, {}", group.ranks, group.nodes, group.nodes > 1 ? "s" : "",
                     to_string(t.backend));
}

Expected<void> add_findings(shape::HardwareProfile& profile, const Trial& t,
                            const std::vector<RankRecord>& records) {
  SWEEP_GET(const auto request, calibration_request_from(t.program));
  const Group group = group_of(t, request);
  for (const RankRecord& record : records) {
    const auto& found = record.effective.calibration;
    if (!found) return fail(fmt::format("rank {} reports no calibration", record.rank));
    if (const auto sound = check(*found); !sound)
      return fail(fmt::format("rank {}: {}", record.rank, sound.error().message));
    add(profile, *found);
    for (const auto& c : found->collectives)
      add(profile, {c.kind, record.effective.backend.value_or(""), group.ranks, group.nodes, c.bytes,
                    c.seconds, c.wrong});
  }
  return {};
}

Expected<CalibrationReport> run_calibration(const SelfTestRequest& request, const CalibrationSetup& setup,
                                            std::optional<double> hang_seconds,
                                            const MakeObserver& make_observer) {
  auto entries = built_in_entries(calibration_trials(setup), kCalibrationSeconds);
  for (PlanEntry& entry : entries) entry.predicted.step_ms = kPredictedItemMs;
  SweepOptions options;
  options.measure = kCalibrationMeasure;
  options.hang_seconds = hang_seconds;
  options.retries_hang = options.retries_timeout = 0;
  auto run = run_built_in(request, "calibrate", entries, std::move(options), make_observer);
  if (!run) return tl::unexpected(run.error());
  CalibrationReport out;
  out.profile.hardware = setup.hardware, out.profile.threads = setup.threads;
  for (const PlanEntry& entry : entries)
    SWEEP_TRY(take(run->driver.store(), run->driver.sweep().id, entry, out));
  if (run->report.end.end != run::End::kDone) out.why = run->report.end.why;
  out.profile.fit();
  return out;
}

std::filesystem::path calibration_db() {
  return state_folder() / "calibrate.db";
}

Expected<std::vector<shape::HardwareProfile>> stored_profiles(const std::filesystem::path& db) {
  std::vector<shape::HardwareProfile> out;
  std::error_code ec;
  if (!std::filesystem::exists(db, ec)) return out;
  SWEEP_GET(auto store, store::Store::open(db, store::Mode::kReadOnly));
  SWEEP_GET(const auto rows, store->hardware_profiles());
  for (const auto& row : rows) {
    auto profile = shape::hardware_profile_from_json(row.profile);
    if (!profile)
      return fail(fmt::format("the hardware profile '{}' in {}: {}; run `sweep calibrate` again", row.name,
                              db.string(), profile.error().message));
    out.push_back(std::move(*profile));
  }
  return out;
}

}  // namespace sweep::driver
