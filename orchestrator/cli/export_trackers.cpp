#include "orchestrator/cli/export_trackers.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <sstream>

#include "base/expected.h"
#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/history.h"
#include "orchestrator/export/deliver.h"
#include "orchestrator/export/interrupt.h"
#include "orchestrator/export/mlflow.h"
#include "orchestrator/export/results.h"
#include "orchestrator/export/wandb_file.h"
#include "orchestrator/export/wandb_online.h"
#include "orchestrator/export/wandb_wire.h"
#include "schema/codec.h"

namespace sweep::cli {
namespace {

using exports::RetryingClient;

// The finished trials of a sweep, ready to be read one by one.
class Finished {
 public:
  static Expected<Finished> open(const SweepSelector& where) {
    auto opened = open_sweep(where, store::Mode::kReadOnly);
    if (!opened) return tl::unexpected(opened.error());
    auto rows = opened->store->results(opened->sweep.id);
    if (!rows) return tl::unexpected(rows.error());
    Finished out(std::move(*opened));
    for (auto& named : named_rows(*rows, false))
      if (exports::is_exported(*named.row)) out.rows_.emplace_back(std::move(named.name), *named.row);
    out.left_out_ = static_cast<i64>(rows->size()) - out.size();
    return out;
  }

  i64 size() const { return static_cast<i64>(rows_.size()); }
  i64 left_out() const { return left_out_; }
  const store::SweepRow& sweep() const { return opened_.sweep; }

  Expected<exports::TrackerRun> run(i64 index) const {
    const auto& [name, row] = rows_[static_cast<std::size_t>(index)];
    auto history = answers::history(*opened_.store, opened_.sweep.id, row);
    if (!history) return tl::unexpected(history.error());
    std::vector<exports::StepValues> steps;
    for (auto& step : *history) steps.push_back({step.step_ns, std::move(step.values)});
    return exports::tracker_run(row, std::move(steps), name, opened_.sweep.question);
  }

  Expected<exports::TrackerSweep> as_whole() const {
    exports::TrackerSweep out;
    out.name = opened_.sweep.name, out.question = opened_.sweep.question;
    out.grid_text = opened_.sweep.grid_text;
    out.id = name_hash(fmt::format("sweep\n{}\n{}", out.name, opened_.sweep.created_unix_ns));
    out.created_unix_s = out.ended_unix_s = static_cast<double>(opened_.sweep.created_unix_ns) / 1e9;
    std::vector<ResultRow> rows;
    for (const auto& [name, row] : rows_) {
      rows.push_back(row);
      out.ended_unix_s =
          std::max(out.ended_unix_s, static_cast<double>(row.finished_unix_ns.value_or(0)) / 1e9);
    }
    std::ostringstream csv;
    SWEEP_TRY(exports::write_csv(csv, exports::rows_of(rows)));
    out.results_csv = csv.str();
    return out;
  }

 private:
  explicit Finished(Opened opened) : opened_(std::move(opened)) {}
  Opened opened_;
  std::vector<std::pair<std::string, ResultRow>> rows_;
  i64 left_out_ = 0;
};

// Progress and remarks on standard error; on a terminal the progress is one line that redraws.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(Io& io) : io_(io) {}
  void note(const std::string& sentence) {
    clear();
    io_.err << sentence << '\n' << std::flush;
  }
  void progress(i64 done, i64 of) {
    if (!io_.err_is_terminal) return;
    io_.err << "\r\x1b[K" << done << " of " << of << " trials" << std::flush;
    drawn_ = true;
  }
  void clear() {
    if (std::exchange(drawn_, false)) io_.err << "\r\x1b[K";
  }

 private:
  Io& io_;
  bool drawn_ = false;
};

std::optional<std::string> environment(const char* name) {
  return exports::process_environment()(name);
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_name : std::to_string(::geteuid());
}

// The end of an export in words and as an exit code.
int conclude(Io& io, const exports::Deliveries& done, const Finished& trials, const std::string& place) {
  for (const std::string& sentence : done.refused) io.err << "sweep: " << sentence << '\n';
  const i64 there = done.sent + done.updated + done.unchanged;
  io.err << fmt::format("{}: {} of {} finished trials are there ({} sent, {} updated, {} unchanged)", place,
                        there, trials.size(), done.sent, done.updated, done.unchanged);
  if (trials.left_out() > 0)
    io.err << fmt::format("; {} pruned or unfinished ones are not exported", trials.left_out());
  io.err << '\n';
  if (done.complete()) return kAnswered;
  if (done.stopped_by) io.err << "sweep: " << done.stopped_by->sentence << '\n';
  io.err << "run it again to send what is missing\n";
  return done.stopped_by && done.stopped_by->kind == exports::DeliveryError::kInterrupted ? kInterrupted
                                                                                          : kUnanswered;
}

// The work of both online exports around their tracker.
class Connection {
 public:
  Connection(Io& io, const ExportOptions& o) : io_(io), o_(o), printer_(io) {}

  Expected<RetryingClient> client(const std::string& base, exports::Credentials credentials) {
    if (exports::sends_in_the_clear(base) && !credentials.authorization.empty())
      printer_.note(fmt::format("note: the key travels unencrypted to {}", base));
    auto http = exports::Http::make({o_.ca, o_.timeout_s, [this] { return interrupts_.asked(); }},
                                    std::move(credentials));
    if (!http) return tl::unexpected(http.error());
    http_ = std::move(*http);
    return RetryingClient({[this](const exports::Request& request) { return http_->send(request); },
                           [this](double seconds) { return interrupts_.pause(seconds); },
                           [this](const std::string& sentence) { printer_.note(sentence); }},
                          {});
  }
  std::function<void(const std::string&)> note() {
    return [this](const std::string& sentence) { printer_.note(sentence); };
  }

  int carry(exports::Tracker& tracker, const Finished& trials) {
    const auto file = std::filesystem::absolute(o_.where.db).string() + ".exports.jsonl";
    auto journal = exports::Journal::open(file);
    if (!journal) return refuse(io_, journal.error());
    const auto whole = trials.as_whole();
    if (!whole) return refuse(io_, whole.error());
    exports::DeliveryPlan plan;
    plan.runs = trials.size();
    plan.run = [&](i64 index) { return trials.run(index); };
    plan.progress = [&](const exports::Deliveries&, i64 index) {
      printer_.progress(index + 1, trials.size());
    };
    plan.interrupted = [this] { return interrupts_.asked(); };
    plan.again = o_.again;
    const auto done = exports::deliver(tracker, **journal, *whole, plan);
    printer_.clear();
    return done ? conclude(io_, *done, trials, tracker.place()) : refuse(io_, done.error());
  }

 private:
  Io& io_;
  const ExportOptions& o_;
  ProgressPrinter printer_;
  exports::Interrupts interrupts_;
  std::unique_ptr<exports::Http> http_;
};

// The first that says something.
std::string first_of(const std::string& option, const char* variable, const std::string& otherwise) {
  return !option.empty() ? option : environment(variable).value_or(otherwise);
}

}  // namespace

std::vector<exports::NamedRow> named_rows(const std::vector<ResultRow>& rows, bool with_sweep) {
  auto names = answers::setting_names(rows, with_sweep);
  std::vector<exports::NamedRow> out;
  for (std::size_t i = 0; i < rows.size(); ++i) out.push_back({std::move(names[i]), &rows[i]});
  return exports::distinct_names(std::move(out));
}

int export_wandb(Io& io, const ExportOptions& o) {
  const auto base = exports::checked_base(first_of(o.uri, "WANDB_BASE_URL", "https://api.wandb.ai"),
                                          "--uri or WANDB_BASE_URL");
  if (!base) return refuse(io, base.error());
  const exports::WandbTarget target{*base, first_of(o.project, "WANDB_PROJECT", "sweep"),
                                    first_of(o.entity, "WANDB_ENTITY", "")};
  if (auto good = exports::check_wandb_project(target.project); !good) return refuse(io, good.error());
  const auto trials = Finished::open(o.where);
  if (!trials) return refuse(io, trials.error());
  auto key =
      exports::wandb_credentials({exports::process_environment(), o.key_file}, exports::host_of(*base));
  if (!key) return refuse(io, key.error());
  Connection connection(io, o);
  auto client = connection.client(*base, std::move(*key));
  if (!client) return refuse(io, client.error());
  exports::WandbOnline tracker(target, std::move(*client));
  return connection.carry(tracker, *trials);
}

int export_wandb_offline(Io& io, const ExportOptions& o) {
  const std::string project = first_of(o.project, "WANDB_PROJECT", "sweep");
  if (auto good = exports::check_wandb_project(project); !good) return refuse(io, good.error());
  if (std::error_code ec;
      std::filesystem::exists(o.offline, ec) && !std::filesystem::is_directory(o.offline, ec))
    return refuse(io, {fmt::format("--offline {}: this is a file; name a folder", o.offline)});
  const auto trials = Finished::open(o.where);
  if (!trials) return refuse(io, trials.error());
  const exports::WandbOffline writer(o.offline, first_of(o.entity, "WANDB_ENTITY", ""), project);
  exports::Deliveries done;
  exports::Interrupts interrupts;
  ProgressPrinter printer(io);
  for (i64 i = 0; i < trials->size(); ++i) {
    if (interrupts.asked()) {
      done.stopped_by = exports::DeliveryError{exports::DeliveryError::kInterrupted, "interrupted"};
      break;
    }
    const auto run = trials->run(i);
    const auto written = run ? writer.write(*run) : tl::unexpected(run.error());
    if (!written)
      done.refused.push_back(written.error().message);
    else
      ++(*written == exports::WandbOffline::Written::kNew         ? done.sent
         : *written == exports::WandbOffline::Written::kUnchanged ? done.unchanged
                                                                  : done.updated);
    printer.progress(i + 1, trials->size());
  }
  printer.clear();
  const int code = conclude(io, done, *trials, o.offline);
  if (done.sent + done.updated > 0)
    io.err << fmt::format("send them from a machine with network: wandb sync {}/offline-run-*\n", o.offline);
  return code;
}

int export_mlflow(Io& io, const ExportOptions& o) {
  const std::string uri = first_of(o.uri, "MLFLOW_TRACKING_URI", "");
  if (uri.empty()) return refuse(io, {"which MLflow server? --uri http://HOST:PORT, or MLFLOW_TRACKING_URI"});
  const auto base = exports::checked_base(uri, "--uri or MLFLOW_TRACKING_URI");
  if (!base) return refuse(io, base.error());
  const auto trials = Finished::open(o.where);
  if (!trials) return refuse(io, trials.error());
  auto key =
      exports::mlflow_credentials({exports::process_environment(), o.key_file}, exports::host_of(*base));
  if (!key) return refuse(io, key.error());
  Connection connection(io, o);
  auto client = connection.client(*base, std::move(*key));
  if (!client) return refuse(io, client.error());
  exports::Mlflow tracker({*base, first_of(o.experiment, "MLFLOW_EXPERIMENT_NAME", "sweep"), user_name()},
                          std::move(*client), connection.note());
  return connection.carry(tracker, *trials);
}

}  // namespace sweep::cli
