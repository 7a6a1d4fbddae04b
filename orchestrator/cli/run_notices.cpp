#include "orchestrator/cli/run_notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ostream>
#include <tuple>

#include "base/proc.h"
#include "base/template.h"
#include "orchestrator/answers/format.h"
#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep::cli {
namespace {

constexpr const char* kUrlVariable = "SWEEP_NOTIFY";
constexpr const char* kCommandVariable = "SWEEP_NOTIFY_COMMAND";
constexpr const char* kFormVariable = "SWEEP_NOTIFY_FORM";

// docs/notify.md. `text` is what Slack, Matrix and most others show.
nlohmann::json notice(const char* event, const std::string& sweep, const std::filesystem::path& db,
                      const std::string& text) {
  return {{"event", event},
          {"sweep", sweep},
          {"database", db.string()},
          {"host", proc::host_name()},
          {"text", fmt::format("sweep {}: {}", sweep, text)}};
}

// The notice in the form that the receiver takes; null for what this event does not have. Error: the form has a name that no
// notice has, or is no JSON.
Expected<std::string> formed(const nlohmann::json& notice, const std::string& form) {
  if (form.empty()) return dump(notice);
  static constexpr std::array<std::string_view, 8> kOfSomeEvents = {"trial",  "outcome",  "end",      "why",
                                                                    "trials", "answered", "outcomes", "best"};
  auto body = templates::finish(form, [&](std::string_view name) -> std::optional<std::string> {
    if (const auto value = notice.find(name); value != notice.end()) return dump(*value);
    return std::ranges::find(kOfSomeEvents, name) != kOfSomeEvents.end() ? std::optional("null")
                                                                         : std::nullopt;
  });
  if (body && !nlohmann::json::accept(*body))
    return fail(ErrorKind::kInvalidValue, "--notify-form", "it makes no JSON: " + *body);
  return body;
}

void send(exports::Notifier& notifier, const nlohmann::json& notice,
          exports::Notifier::Weight weight = exports::Notifier::Weight::kSure) {
  if (auto body = formed(notice, notifier.form())) notifier.send(std::move(*body), weight);
}

class NotifyingObserver final : public run::Observer {
 public:
  NotifyingObserver(std::unique_ptr<run::Observer> inner, std::shared_ptr<exports::Notifier> notifier,
                    store::Store& store, const store::SweepRow& sweep, std::filesystem::path db)
      : inner_(std::move(inner)),
        notifier_(std::move(notifier)),
        store_(store),
        sweep_id_(sweep.id),
        sweep_(sweep.name),
        db_(std::move(db)) {}

  void on_note(const std::string& sentence) override { inner_->on_note(sentence); }
  void on_event(EventKind kind, const std::string& text) override {
    inner_->on_event(kind, text);
    if (kind == EventKind::kQuarantine || kind == EventKind::kNodeLost)
      send(*notifier_,
           notice(kind == EventKind::kNodeLost ? "node_lost" : "host_excluded", sweep_, db_, text),
           exports::Notifier::Weight::kMinor);
  }
  void on_result(const PlanEntry& entry, const Result& result) override {
    inner_->on_result(entry, result);
    if (failed_ || !stands(result)) return;
    failed_ = true;
    auto body = notice("first_failure", sweep_, db_,
                       fmt::format("trial {} {}: {}", entry.id, to_string(result.outcome), result.reason));
    body["trial"] = entry.id;
    body["outcome"] = to_string(result.outcome);
    send(*notifier_, body);
  }
  void on_snapshot(const run::Snapshot& shot) override { inner_->on_snapshot(shot); }

 private:
  // Whether this failure is the trial's last word: it was not cancelled, and it is not run again.
  bool stands(const Result& result) const {
    if (is_answer(result.outcome) || result.outcome == Outcome::kCancelled) return false;
    const auto row = store_.result(sweep_id_, result.trial_id);
    return row && *row && (*row)->state == State::kFinished && !(*row)->again;
  }

  std::unique_ptr<run::Observer> inner_;
  std::shared_ptr<exports::Notifier> notifier_;
  store::Store& store_;
  i64 sweep_id_;
  std::string sweep_;
  std::filesystem::path db_;
  bool failed_ = false;
};

std::string word_of(run::End end) {
  static constexpr std::array<std::string_view, 6> kWords = {"done",   "stopped", "interrupted",
                                                             "broken", "left",    "silent"};
  return std::string(kWords[static_cast<std::size_t>(end)]);
}

}  // namespace

void add_notify(CLI::App& c, exports::NotifyTargets& targets) {
  c.add_option(
       "--notify", targets.url,
       "POST a JSON body to this address at the end, the first failure, and when a host is excluded or "
       "lost (docs/notify.md)")
      ->envname(kUrlVariable)
      ->type_name("URL");
  c.add_option("--notify-command", targets.command,
               "run this shell command then, with the JSON body on standard input")
      ->envname(kCommandVariable)
      ->type_name("COMMAND");
  c.add_option("--notify-form", targets.form,
               "the body that the receiver takes, with names in braces: {{\"msgtype\": \"m.text\", \"body\": "
               "{text}}}")
      ->envname(kFormVariable)
      ->type_name("TEMPLATE");
}

Expected<void> check_notify(const exports::NotifyTargets& targets, bool as_job) {
  const auto is_word = [](const std::string& target, const char* variable) {
    const char* of_environment = std::getenv(variable);
    return !target.empty() && target != (of_environment ? of_environment : "");
  };
  for (const auto& [target, option, variable] :
       {std::tuple(&targets.url, "--notify", kUrlVariable),
        std::tuple(&targets.command, "--notify-command", kCommandVariable),
        std::tuple(&targets.form, "--notify-form", kFormVariable)})
    if (as_job && is_word(*target, variable))
      return fail(ErrorKind::kConflict, option,
                  fmt::format("{0} does not reach the job of --as-job: it would stand in a file of the job; "
                              "export {1} instead, which sbatch hands on",
                              option, variable));
  if (const auto example = formed(notice("end", "sweep", "sweep.db", "text"), targets.form); !example)
    return tl::unexpected(example.error());
  return exports::checked(targets);
}

RunNotices::RunNotices(Io& io, exports::NotifyTargets targets, std::filesystem::path db)
    : db_(std::move(db)) {
  // They are secrets of this process: the programs of the trials inherit its environment.
  ::unsetenv(kUrlVariable), ::unsetenv(kCommandVariable), ::unsetenv(kFormVariable);
  if (targets.any())
    notifier_ = std::make_shared<exports::Notifier>(std::move(targets), [&io](const std::string& why) {
      io.err << "note: " + answers::safe_text(why) + "\n" << std::flush;
    });
}

driver::MakeObserver RunNotices::with(driver::MakeObserver inner) {
  if (!notifier_) return inner;
  return [inner = std::move(inner), notifier = notifier_, db = db_](
             store::Store& store, const store::SweepRow& sweep) -> Expected<std::unique_ptr<run::Observer>> {
    auto made = inner(store, sweep);
    if (!made) return made;
    return std::make_unique<NotifyingObserver>(std::move(*made), notifier, store, sweep, db);
  };
}

void RunNotices::ended(store::Store& store, const store::SweepRow& sweep, const run::RunEnd& end) {
  if (!notifier_ || end.end == run::End::kLeft) return;  // the next start of the job goes on
  std::string text = word_of(end.end) + (end.why.empty() ? "" : ": " + end.why);
  nlohmann::json counts = {
      {"trials", nullptr}, {"answered", nullptr}, {"outcomes", nullptr}, {"best", nullptr}};
  if (const auto shot = run::take_snapshot(store, sweep.id, 0)) {
    const i64 answered = shot->counts.answered();
    text += fmt::format("; {} of {} trials have an answer", answered, shot->counts.total);
    counts["trials"] = shot->counts.total, counts["answered"] = answered;
    counts["outcomes"] = nlohmann::json::object();
    for (const auto& [outcome, count] : shot->counts.by_outcome)
      counts["outcomes"][std::string(to_string(outcome))] = count;
    if (shot->best) counts["best"] = shot->best->trial_id;
  }
  auto body = notice("end", sweep.name, db_, text);
  body["end"] = word_of(end.end), body["why"] = end.why;
  body.update(counts);
  send(*notifier_, body);
}

}  // namespace sweep::cli
