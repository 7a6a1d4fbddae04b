#include "orchestrator/cli/export_trackers.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/history.h"
#include "orchestrator/export/send.h"
#include "orchestrator/export/wandb_wire.h"

namespace sweep::cli {
namespace {

Expected<exports::FinishedTrials> finished_trials(const SweepSelector& where) {
  SWEEP_GET(auto opened, open_sweep(where, store::Mode::kReadOnly));
  SWEEP_GET(const auto rows, opened.store->results(opened.sweep.id));
  const store::SweepRow& sweep = opened.sweep;
  const exports::ExportedSweep facts{sweep.name, sweep.question, sweep.grid_text, sweep.created_unix_ns};
  const std::shared_ptr<store::Store> store = std::move(opened.store);
  return exports::FinishedTrials(
      facts, rows, answers::setting_names(rows, false),
      [store, id = sweep.id](const ResultRow& row) -> Expected<std::vector<exports::StepValues>> {
        SWEEP_GET(auto history, answers::history(*store, id, row));
        std::vector<exports::StepValues> steps;
        for (auto& step : history) steps.push_back({step.step_ns, std::move(step.values)});
        return steps;
      });
}

// Progress and remarks on standard error; on a terminal the progress is one line that redraws.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(Io& io) : io_(io) {}
  exports::Listener listener() {
    return {[this](const std::string& sentence) { note(sentence); },
            [this](i64 done, i64 of) { progress(done, of); }};
  }
  void clear() {
    if (std::exchange(drawn_, false)) io_.err << "\r\x1b[K";
  }

 private:
  void note(const std::string& sentence) {
    clear();
    io_.err << sentence << '\n' << std::flush;
  }
  void progress(i64 done, i64 of) {
    if (!io_.err_is_terminal) return;
    io_.err << "\r\x1b[K" << done << " of " << of << " trials" << std::flush;
    drawn_ = true;
  }
  Io& io_;
  bool drawn_ = false;
};

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_name : std::to_string(::geteuid());
}

// The end of an export in words and as an exit code.
int conclude(Io& io, const exports::Sent& sent, const exports::FinishedTrials& trials) {
  const exports::Deliveries& done = sent.done;
  for (const std::string& sentence : done.refused) io.err << "sweep: " << sentence << '\n';
  io.err << exports::sent_line(sent, trials);
  if (done.complete()) return kAnswered;
  if (done.stopped_by) io.err << "sweep: " << done.stopped_by->sentence << '\n';
  io.err << "run it again to send what is missing\n";
  return done.stopped_by && done.stopped_by->kind == exports::DeliveryError::kInterrupted ? kInterrupted
                                                                                          : kUnanswered;
}

template <class Target>
int send(Io& io, const ExportOptions& o, const exports::FinishedTrials& trials, const Target& target,
         Expected<exports::Sent> (*send_to)(const exports::FinishedTrials&, const Target&,
                                            const exports::SendOptions&, const exports::Listener&)) {
  const exports::SendOptions options{std::filesystem::absolute(o.where.db).string() + ".exports.jsonl",
                                     o.key_file, o.ca, o.timeout_s, o.again};
  ProgressPrinter printer(io);
  const auto sent = send_to(trials, target, options, printer.listener());
  printer.clear();
  return sent ? conclude(io, *sent, trials) : refuse(io, sent.error());
}

// The first that says something.
std::string first_of(const std::string& option, const char* variable, const std::string& otherwise) {
  return !option.empty() ? option : exports::process_environment()(variable).value_or(otherwise);
}

}  // namespace

int export_wandb(Io& io, const ExportOptions& o) {
  const auto base = exports::checked_base(first_of(o.uri, "WANDB_BASE_URL", "https://api.wandb.ai"),
                                          "--uri or WANDB_BASE_URL");
  if (!base) return refuse(io, base.error());
  const exports::WandbTarget target{*base, first_of(o.project, "WANDB_PROJECT", "sweep"),
                                    first_of(o.entity, "WANDB_ENTITY", "")};
  if (auto good = exports::check_wandb_project(target.project); !good) return refuse(io, good.error());
  const auto trials = finished_trials(o.where);
  return trials ? send(io, o, *trials, target, exports::send_to_wandb) : refuse(io, trials.error());
}

int export_wandb_offline(Io& io, const ExportOptions& o) {
  const std::string project = first_of(o.project, "WANDB_PROJECT", "sweep");
  if (auto good = exports::check_wandb_project(project); !good) return refuse(io, good.error());
  if (std::error_code ec;
      std::filesystem::exists(o.offline, ec) && !std::filesystem::is_directory(o.offline, ec))
    return refuse(io, {fmt::format("--offline {}: this is a file; name a folder", o.offline)});
  const auto trials = finished_trials(o.where);
  if (!trials) return refuse(io, trials.error());
  const exports::WandbOffline writer(o.offline, first_of(o.entity, "WANDB_ENTITY", ""), project);
  ProgressPrinter printer(io);
  const exports::Sent sent{exports::write_offline(*trials, writer, printer.listener()), o.offline};
  printer.clear();
  const int code = conclude(io, sent, *trials);
  if (sent.done.sent + sent.done.updated > 0)
    io.err << fmt::format("send them from a machine with network: wandb sync {}/offline-run-*\n", o.offline);
  return code;
}

int export_mlflow(Io& io, const ExportOptions& o) {
  const std::string uri = first_of(o.uri, "MLFLOW_TRACKING_URI", "");
  if (uri.empty()) return refuse(io, {"which MLflow server? --uri http://HOST:PORT, or MLFLOW_TRACKING_URI"});
  const auto base = exports::checked_base(uri, "--uri or MLFLOW_TRACKING_URI");
  if (!base) return refuse(io, base.error());
  const auto trials = finished_trials(o.where);
  if (!trials) return refuse(io, trials.error());
  const exports::MlflowTarget target{*base, first_of(o.experiment, "MLFLOW_EXPERIMENT_NAME", "sweep"),
                                     user_name()};
  return send(io, o, *trials, target, exports::send_to_mlflow);
}

}  // namespace sweep::cli
