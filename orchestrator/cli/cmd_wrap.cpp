// sweep wrap: one run of a command under the watchdog, with a row in the database.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/launch_options.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/driver/wrapped.h"

namespace sweep::cli {
namespace {

using Clock = std::chrono::steady_clock;

// "ok in 12.3 s; 40 steps of 51.2 ms".
std::string sentence_of(const driver::WrapReport& report, double seconds) {
  if (!report.result) return fmt::format("interrupted after {:.1f} s", seconds);
  const Result& result = *report.result;
  std::string out = fmt::format("{} in {:.1f} s", to_string(result.outcome), seconds);
  if (result.metrics.step_ms)
    out += fmt::format("; {} steps of {:.4g} ms", result.metrics.timed_steps.value_or(0),
                       *result.metrics.step_ms);
  if (result.metrics.peak_reserved_bytes)
    out += fmt::format("; {:.2f} GiB reserved",
                       static_cast<double>(*result.metrics.peak_reserved_bytes) / (1 << 30));
  if (result.outcome != Outcome::kOk && !result.reason.empty()) out += "\n  " + result.reason;
  return out;
}

void print_text(Io& io, const driver::WrapReport& report, double seconds, const std::string& db) {
  io.out << answers::safe_lines(fmt::format("{}: {}\n", report.sweep, sentence_of(report, seconds)));
  if (!report.log.empty()) io.out << answers::safe_text(fmt::format("log: {}", report.log.string())) << '\n';
  if (report.result)
    io.out << answers::safe_text(fmt::format("more: sweep explain {} --db {}", report.trial, shell_word(db)))
           << '\n';
}

nlohmann::json document(const driver::WrapReport& report, double seconds, const std::string& db) {
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  const Result result = report.result.value_or(Result());
  const bool ended = report.result.has_value();
  return {{"sweep", report.sweep},
          {"db", db},
          {"trial", report.trial},
          {"outcome", ended ? nlohmann::json(to_string(result.outcome)) : nlohmann::json(nullptr)},
          {"reason", result.reason},
          {"seconds", seconds},
          {"step_ms", or_null(result.metrics.step_ms)},
          {"timed_steps", or_null(result.metrics.timed_steps)},
          {"peak_reserved_bytes", or_null(result.metrics.peak_reserved_bytes)},
          {"log", report.log.empty() ? nlohmann::json(nullptr) : nlohmann::json(report.log.string())}};
}

int wrap(Io& io, const driver::WrapRequest& request, bool quiet) {
  const auto begun = Clock::now();
  const auto report = driver::run_wrapped(request, progress_lines(io, quiet));
  if (!report) return refuse(io, report.error());
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  if (io.json)
    print_document(io, document(*report, seconds, request.db));
  else
    print_text(io, *report, seconds, request.db);
  if (report->end.end == run::End::kInterrupted) return kInterrupted;
  return report->result && report->result->outcome == Outcome::kOk ? kAnswered : kUnanswered;
}

}  // namespace

void add_wrap(Registry r) {
  auto* c = r.app.add_subcommand(
      "wrap", "run one command under the watchdog: outcome, evidence and step times go to the database");
  auto o = std::make_shared<driver::WrapRequest>();
  auto quiet = std::make_shared<bool>(false);
  c->add_option("COMMAND", o->words, "the command and its arguments, after --; no shell reads them")
      ->required();
  c->add_option(
       "--processes", o->processes,
       "start it so many times, as torchrun would (RANK, WORLD_SIZE, ...); 1: it starts others itself")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  c->add_option("--name", o->name, "name of the sweep; absent: made from the command");
  c->add_option("--db", o->db, "the results database (SQLite file)")
      ->envname("SWEEP_DB")
      ->capture_default_str()
      ->type_name("FILE");
  c->add_option("--hardware", o->hardware,
                "catalogue name of this machine's GPUs; `sweep hardware` lists them")
      ->capture_default_str();
  c->add_option("--hang-seconds", o->hang_seconds, "without progress for so long it is a hang")
      ->check(above_zero());
  c->add_option(
       "--start-seconds", o->start_seconds,
       "the same before the first step is done: imports, downloads, compilers; absent: --hang-seconds")
      ->check(above_zero());
  c->add_option("--timeout-seconds", o->trial_seconds, "end it after so long, as a timeout")
      ->check(above_zero());
  c->add_flag("--quiet", *quiet, "print no progress, only the outcome");
  add_json(*c);
  add_programs(*c, o->launch);
  c->callback([r, o, quiet] { r.chosen = [r, o, quiet] { return wrap(r.io, *o, *quiet); }; });
}

}  // namespace sweep::cli
