// sweep confirm: the best configurations of a sweep measured again, longer, interleaved, in several
// allocations.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/statistics.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/confirmation.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

struct ConfirmCommand {
  SweepSelector where;
  driver::ConfirmRequest request;
  i64 top = 3;
  bool quiet = false, json = false;
};

int answer(Io& io, const driver::ConfirmReport& report, const ConfirmCommand& o) {
  if (report.ended_early)
    io.err << answers::safe_text(report.ended_early->why) << "; the same command goes on from here\n";
  const auto found = answers::confirmed(report.measured, o.request.metric);
  if (o.json) {
    print_document(io, answers::confirmed_json(found, report.ended_early ? report.ended_early->why : ""));
  } else if (!report.ended_early) {
    io.out << answers::confirmed_text(found) << std::flush;
  }
  if (report.ended_early)
    return report.ended_early->end == run::End::kInterrupted ? kInterrupted : kUnanswered;
  return found.holds ? kAnswered : kUnanswered;
}

int confirm(Io& io, ConfirmCommand o) {
  driver::ConfirmRequest& request = o.request;
  if (!request.metric.empty() && answers::follows_step(request.metric) == answers::FollowsStep::kNot)
    return refuse(
        io, {fmt::format(
                "--metric {}: only what follows from the step time can be confirmed: step_ms, tokens_per_s, "
                "tokens_per_s_gpu, tflops_gpu, mfu, hfu, mt_per_hour, cost_per_mt or a useful_ one of these",
                request.metric)});
  auto opened = open_sweep(o.where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  const auto sweep = driver::confirmed_sweep(*opened->store, std::move(opened->sweep));
  if (!sweep) return refuse(io, sweep.error());
  if (is_rehearsal(sweep->name))
    return refuse(
        io,
        {fmt::format("'{}' is a rehearsal: its times are modelled, so there is nothing to measure again; run "
                     "the grid on the hardware, then confirm that sweep",
                     sweep->name),
         ErrorKind::kRefused, sweep->name});
  const auto holder = opened->store->lease(sweep->id);
  if (!holder) return refuse(io, holder.error());
  if (*holder)
    return refuse(io, {fmt::format("sweep '{}': {}; its best are not known yet", sweep->name,
                                   driver::holder_text(**holder))});
  if (request.metric.empty()) {
    auto usual = opened->store->usual_metric(sweep->id);
    if (!usual) return refuse(io, usual.error());
    request.metric = std::move(*usual);
  }
  const auto best = opened->store->best(sweep->id, request.metric, o.top);
  if (!best) return refuse(io, best.error());
  if (best->empty()) {
    io.err << fmt::format("sweep '{}' has no ok result with {}: there is nothing to confirm\n", sweep->name,
                          request.metric);
    return o.json ? answer(io, {}, o) : kUnanswered;
  }
  if (best->front().trial.workload == Workload::kCommand)
    request.repeats = 1;  // a command's steps run once an attempt
  driver::SweepDriver driver(std::move(opened->store), o.where.db);
  const auto report = driver::confirm_best(driver, *sweep, *best, request, progress_lines(io, o.quiet),
                                           [&io](const std::string& line) { io.err << line << '\n'; });
  return report ? answer(io, *report, o) : refuse(io, report.error());
}

}  // namespace

void add_confirm(Registry r) {
  auto* c = r.app.add_subcommand(
      "confirm", "measure the best again, longer and in several allocations: does the ranking hold?");
  auto o = std::make_shared<ConfirmCommand>();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("--top", o->top, "how many of the best")->check(CLI::Range(1, 100))->capture_default_str();
  c->add_option("--metric", o->request.metric,
                "what makes one the best; it must follow from the step time; absent: as for `best`");
  c->add_option("--allocations", o->request.allocations, "allocations in which each is measured")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  c->add_option("--repeats", o->request.repeats, "repeats in each allocation")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  c->add_option("--steps", o->request.steps, "timed steps of a repeat; absent: three times the sweep's")
      ->check(above_zero());
  c->add_option("--slots", o->request.launch.slots,
                "CPU ranks or GPUs to use at once; absent: as the sweep was run")
      ->check(above_zero());
  c->add_flag("--json", o->json, kJsonDocument);
  c->add_flag("--quiet", o->quiet, "print no progress, only problems");
  add_programs(*c, o->request.launch);
  c->callback([r, o] { r.chosen = [r, o] { return confirm(r.io, *o); }; });
}

}  // namespace sweep::cli
