// sweep selftest: every strategy of the training step against the plain step of one rank and the formulas, on
// the user's own machines, through the ordinary run loop.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/files.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/statistics/prices.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/check_answers.h"
#include "schema/codec.h"

namespace sweep::cli {
namespace {

using driver::SelfTestTrial, driver::SelfTestSetup;

struct SelftestOptions {
  driver::SelfTestRequest request;
  bool quiet = false;
  SelfTestSetup setup;
  i64 ranks_per_node = 0;
  std::vector<std::string> only;
  bool json = false;
};

Expected<std::vector<SelfTestTrial>> wanted_trials(const SelftestOptions& o) {
  SelfTestSetup setup = o.setup;
  SWEEP_GET(const auto hardware, shape::find_hardware(setup.hardware));
  setup.ranks_per_node = o.ranks_per_node;
  if (setup.ranks_per_node == 0) setup.ranks_per_node = setup.hardware == "cpu" ? 4 : hardware.gpus_per_node;
  if (setup.backend == CommBackend::kShm && (setup.nodes > 1 || setup.hardware != "cpu"))
    return fail("--backend shm is for CPU ranks of one node; gloo and nccl go across nodes");
  std::vector<SelfTestTrial> out;
  std::vector<std::string> names;
  for (auto& selftest : driver::selftest_trials(setup)) {
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
  const auto answer = driver::selftest_answer(std::move(*wanted), *report);
  io.out << (o.json ? dump(driver::selftest_json(answer)) + "\n" : driver::selftest_text(answer));
  const auto file = state_folder() / "selftest.json";
  if (auto kept = driver::add_selftest_results(file, driver::results_of(answer, answers::today())); !kept)
    return refuse(io, kept.error());
  io.err << fmt::format("kept in {}; `sweep doctor` shows it beside the dates of the project's own tests\n",
                        file.string());
  return answer.passed() ? kAnswered : kUnanswered;
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
  c->add_option("--hardware", o->setup.hardware, "hardware of the ranks, a name of the catalogue")
      ->capture_default_str();
  c->add_option("--nodes", o->setup.nodes, "nodes each strategy spans")
      ->check(CLI::IsMember({1, 2, 4}))
      ->capture_default_str();
  c->add_option("--ranks-per-node", o->ranks_per_node, "at most; absent: the hardware's GPUs, 4 on CPU")
      ->check(CLI::Range(1, 64));
  c->add_option_function<std::string>(
       "--backend", [o](const std::string& word) { o->setup.backend = *choice_from<CommBackend>(word); },
       "communication backend")
      ->check(CLI::IsMember({"auto", "shm", "gloo", "nccl"}))
      ->default_str("auto");
  c->add_option("--only", o->only, "only these strategies, by name, separated by commas")->delimiter(',');
  c->add_flag("--json", o->json, "as JSON");
  c->add_flag("--quiet", o->quiet, "print no progress, only the table");
  c->callback([r, o] { r.chosen = [r, o] { return selftest(r.io, *o); }; });
}

}  // namespace sweep::cli
