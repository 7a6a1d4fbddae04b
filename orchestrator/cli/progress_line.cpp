#include "orchestrator/cli/progress_line.h"

#include <fmt/format.h>

#include <ostream>

#include "orchestrator/answers/format.h"
#include "orchestrator/driver/sweep_status.h"

namespace sweep::cli {
namespace {

constexpr auto kPlainLineEvery = std::chrono::seconds(10);
constexpr auto kSameLineEvery = std::chrono::minutes(5);  // a log of a night in the queue stays readable

}  // namespace

void ProgressLine::clear_line() {
  if (drawn_) io_.err << "\r\x1b[K";
  drawn_ = false;
}

void ProgressLine::on_note(const std::string& sentence) {
  clear_line();
  io_.err << answers::safe_text(sentence) << '\n';
}

void ProgressLine::on_result(const PlanEntry& entry, const Result& result) {
  if (quiet_ || is_answer(result.outcome)) return;
  clear_line();
  io_.err << fmt::format("{} {}: {}\n", entry.id, to_string(result.outcome),
                         answers::safe_text(result.reason));
}

void ProgressLine::on_snapshot(const run::Snapshot& shot) {
  last_ = shot;
  if (quiet_) return;
  const auto view = answers::status_view(driver::progress_of(sweep_, shot), shown_);
  if (io_.err_is_terminal) {
    clear_line();
    io_.err << answers::status_bar(view, static_cast<std::size_t>(io_.width - 1)) << std::flush;
    drawn_ = true;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  auto line = answers::status_line(view);
  const bool same = line == line_;
  unsaid_ = !same;
  if (!line_.empty() && now - said_ < (same ? std::chrono::seconds(kSameLineEvery) : kPlainLineEvery)) return;
  said_ = now;
  unsaid_ = false;
  line_ = std::move(line);
  io_.err << line_ << std::flush;
}

void ProgressLine::close() {
  clear_line();
  if (!quiet_ && last_ && (io_.err_is_terminal || unsaid_))
    io_.err << answers::status_line(answers::status_view(driver::progress_of(sweep_, *last_), shown_))
            << std::flush;
  last_.reset();
}

driver::MakeObserver progress_lines(Io& io, bool quiet) {
  return [&io, quiet](store::Store& store,
                      const store::SweepRow& sweep) -> Expected<std::unique_ptr<run::Observer>> {
    SWEEP_GET(auto shown, answers::varying_axes(store, sweep.id));
    return std::make_unique<ProgressLine>(io, sweep, std::move(shown), quiet);
  };
}

}  // namespace sweep::cli
