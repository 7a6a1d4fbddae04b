// sweep selftest: every strategy of the training step against the plain step of one rank and the formulas, on
// the user's own machines, through the ordinary run loop.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/files.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/selftest.h"
#include "orchestrator/driver/selftest_results.h"
#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

using driver::SelfTestOutcome, driver::SelfTestTrial, driver::TestBed;

struct SelftestOptions {
  driver::SelfTestRequest request;
  bool quiet = false;
  TestBed bed;
  i64 ranks_per_node = 0;
  std::vector<std::string> only;
  bool json = false;
};

struct Row {
  SelfTestTrial trial;
  std::optional<SelfTestOutcome> found;
  bool good = false;
};

std::string distance(const Row& row, double value) {
  return row.found && row.found->outcome == Outcome::kOk ? fmt::format("{:.1e}", value) : "-";
}

std::string list_cell(const Row& row, const std::vector<std::string>& faults) {
  if (!row.found || row.found->outcome != Outcome::kOk) return "-";
  return faults.empty() ? "equal" : "WRONG";
}

std::string bytes_cell(const Row& row) {
  const std::string said = list_cell(row, row.found ? row.found->bytes : std::vector<std::string>{});
  if (said != "equal" || row.found->bytes_exact) return said;
  return fmt::format("{:+.1f} %", 100 * row.found->bytes_off);
}

// Says what is wrong, in one sentence.
std::string why_of(const Row& row, const std::string& ended) {
  if (!row.trial.trial) return row.trial.why;
  if (!row.found) return ended.empty() ? "no result" : ended;
  if (row.found->outcome != Outcome::kOk)
    return fmt::format("{}: {}", to_string(row.found->outcome), row.found->reason);
  for (const auto* faults : {&row.found->bytes, &row.found->traffic, &row.found->collectives})
    if (!faults->empty()) return faults->front();
  return row.good ? "" : fmt::format("not equal to the step of one rank, most of all {}", row.found->worst);
}

const char* result_of(const Row& row) {
  return !row.trial.trial ? "not run" : row.good ? "passed" : "failed";
}

void print_table(Io& io, const std::vector<Row>& rows, const std::string& ended) {
  io.out << fmt::format("{:<16} {:<10} {:>8} {:>8} {:>9}  {:<8} {:<8} {:<11} {}\n", "strategy", "backend",
                        "loss", "gradient", "parameter", "bytes", "traffic", "collectives", "result");
  for (const Row& row : rows) {
    const char* backend =
        row.trial.trial
            ? driver::kBackendNames[static_cast<std::size_t>(driver::backend_of(*row.trial.trial))]
            : "-";
    const SelfTestOutcome none;
    const SelfTestOutcome& f = row.found ? *row.found : none;
    const std::string why = why_of(row, ended);
    io.out << fmt::format("{:<16} {:<10} {:>8} {:>8} {:>9}  {:<8} {:<8} {:<11} {}{}\n", row.trial.strategy,
                          backend, distance(row, f.loss), distance(row, f.gradient), distance(row, f.value),
                          bytes_cell(row), list_cell(row, f.traffic), list_cell(row, f.collectives),
                          row.trial.trial && !row.good ? "FAILED" : result_of(row),
                          why.empty() ? "" : ": " + why);
  }
}

void print_json(Io& io, const std::vector<Row>& rows, const std::string& ended) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json each{
        {"strategy", row.trial.strategy}, {"result", result_of(row)}, {"why", why_of(row, ended)}};
    if (row.trial.trial) {
      each["backend"] = driver::kBackendNames[static_cast<std::size_t>(driver::backend_of(*row.trial.trial))];
      each["trial"] = trial_id(*row.trial.trial);
    }
    if (row.found && row.found->outcome == Outcome::kOk)
      each.update({{"loss", row.found->loss},
                   {"gradient", row.found->gradient},
                   {"parameter", row.found->value},
                   {"bytes_exact", row.found->bytes_exact},
                   {"bytes_off", row.found->bytes_off},
                   {"bytes", row.found->bytes},
                   {"traffic", row.found->traffic},
                   {"collectives", row.found->collectives},
                   {"hosts", row.found->hosts}});
    list.push_back(std::move(each));
  }
  io.out << dump({{"version", kVersion}, {"build", kBuild}, {"strategies", std::move(list)}}) << "\n";
}

driver::SelfTestResults selftest_results_of(const std::vector<Row>& rows) {
  driver::SelfTestResults out;
  const std::string today = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  for (const Row& row : rows)
    if (row.found)
      out[{row.trial.strategy,
           driver::kBackendNames[static_cast<std::size_t>(driver::backend_of(*row.trial.trial))]}] = {
          today, row.good, row.found->hosts, std::string(kVersion) + " " + kBuild};
  return out;
}

Expected<std::vector<SelfTestTrial>> wanted_trials(const SelftestOptions& o) {
  TestBed bed = o.bed;
  const auto hardware = shape::find_hardware(bed.hardware);
  if (!hardware) return tl::unexpected(hardware.error());
  bed.ranks_per_node = o.ranks_per_node;
  if (bed.ranks_per_node == 0) bed.ranks_per_node = bed.hardware == "cpu" ? 4 : hardware->gpus_per_node;
  if (bed.backend == CommBackend::kShm && (bed.nodes > 1 || bed.hardware != "cpu"))
    return fail("--backend shm is for CPU ranks of one node; gloo and nccl go across nodes");
  std::vector<SelfTestTrial> out;
  std::vector<std::string> names;
  for (auto& selftest : driver::selftest_trials(bed)) {
    names.push_back(selftest.strategy);
    if (o.only.empty() || std::find(o.only.begin(), o.only.end(), selftest.strategy) != o.only.end())
      out.push_back(std::move(selftest));
  }
  for (const auto& name : o.only)
    if (std::find(names.begin(), names.end(), name) == names.end())
      return fail(fmt::format("--only {}: there are {}", name, fmt::join(names, ", ")));
  return out;
}

int selftest(Io& io, SelftestOptions o) {
  auto wanted = wanted_trials(o);
  if (!wanted) return refuse(io, wanted.error());
  if (o.request.db.empty()) o.request.db = (state_folder() / "selftest.db").string();
  std::vector<Trial> trials;
  for (const auto& selftest : *wanted)
    if (selftest.trial) trials.push_back(*selftest.trial);
  if (trials.empty()) return refuse(io, {"no strategy can be shown there: " + wanted->front().why});
  const auto report = driver::run_selftests(o.request, "selftest", trials, progress_lines(io, o.quiet));
  if (!report) return refuse(io, report.error());
  std::vector<Row> rows;
  bool all_good = true;
  for (auto& selftest : *wanted) {
    Row row{std::move(selftest), std::nullopt, false};
    if (row.trial.trial)
      if (const auto found = report->outcomes.find(trial_id(*row.trial.trial));
          found != report->outcomes.end())
        row.found = found->second;
    row.good = row.found && driver::passed(*row.found, driver::tolerance_of(*row.trial.trial));
    all_good = all_good && (row.good || !row.trial.trial);
    rows.push_back(std::move(row));
  }
  o.json ? print_json(io, rows, report->why) : print_table(io, rows, report->why);
  const auto file = state_folder() / "selftest.json";
  if (auto kept = driver::add_selftest_results(file, selftest_results_of(rows)); !kept)
    return refuse(io, kept.error());
  io.err << fmt::format("kept in {}; `sweep doctor` shows it beside the dates of the project's own tests\n",
                        file.string());
  return all_good ? kAnswered : kUnanswered;
}

}  // namespace

void add_selftest(Registry r) {
  auto* c = r.app.add_subcommand(
      "selftest",
      "test each parallel strategy on this machine or allocation: parity, bytes, traffic, collectives");
  auto o = std::make_shared<SelftestOptions>();
  add_selftest_options(*c, o->request);
  c->add_option("--db", o->request.db,
                "database of the test runs; absent: selftest.db in the user's state folder")
      ->type_name("FILE");
  c->add_option("--hardware", o->bed.hardware, "hardware of the ranks, a name of the catalogue")
      ->capture_default_str();
  c->add_option("--nodes", o->bed.nodes, "nodes each strategy spans")
      ->check(CLI::IsMember({1, 2, 4}))
      ->capture_default_str();
  c->add_option("--ranks-per-node", o->ranks_per_node, "at most; absent: the hardware's GPUs, 4 on CPU")
      ->check(CLI::Range(1, 64));
  c->add_option_function<std::string>(
       "--backend", [o](const std::string& word) { o->bed.backend = *choice_from<CommBackend>(word); },
       "communication backend")
      ->check(CLI::IsMember({"auto", "shm", "gloo", "nccl"}))
      ->default_str("auto");
  c->add_option("--only", o->only, "only these strategies, by name, separated by commas")->delimiter(',');
  c->add_flag("--json", o->json, "as JSON");
  c->add_flag("--quiet", o->quiet, "print no progress, only the table");
  c->callback([r, o] { r.chosen = [r, o] { return selftest(r.io, *o); }; });
}

}  // namespace sweep::cli
