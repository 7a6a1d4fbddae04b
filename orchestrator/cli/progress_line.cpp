#include "orchestrator/cli/progress_line.h"

#include <fmt/format.h>

#include <ostream>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/tables/status.h"

namespace sweep::cli {
namespace {

constexpr auto kPlainLineEvery = std::chrono::seconds(10);
constexpr auto kSameLineEvery = std::chrono::minutes(5);  // a log of a night in the queue stays readable

}  // namespace

Expected<std::vector<answers::Field>> varying_axes(store::Store& store, i64 sweep) {
  const auto entries = store.plan(sweep);
  if (!entries) return tl::unexpected(entries.error());
  std::vector<ResultRow> rows;
  for (const auto& entry : *entries) {
    ResultRow row;
    row.trial = entry.trial;
    rows.push_back(std::move(row));
  }
  return answers::varying(rows);
}

answers::StatusView status_view(const std::string& sweep, const run::Snapshot& shot,
                                std::span<const answers::Field> shown) {
  answers::StatusView view;
  view.sweep = sweep;
  view.total = shot.counts.total;
  view.pending = shot.counts.pending;
  view.running = shot.counts.running;
  view.by_outcome = shot.counts.by_outcome;
  if (shot.elapsed_s > 0) view.elapsed_s = shot.elapsed_s;
  view.left_s = shot.seconds_left;
  if (shot.best && shot.best->metrics.tokens_per_s_gpu)
    view.best = answers::StatusView::Best{"tokens_per_s_gpu", *shot.best->metrics.tokens_per_s_gpu,
                                          answers::setting_text(*shot.best, shown), shot.best->trial_id};
  return view;
}

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
  const auto view = status_view(sweep_, shot, shown_);
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
    io_.err << answers::status_line(status_view(sweep_, *last_, shown_)) << std::flush;
  last_.reset();
}

driver::MakeObserver progress_lines(Io& io, bool quiet) {
  return [&io, quiet](store::Store& store,
                      const store::SweepRow& sweep) -> Expected<std::unique_ptr<run::Observer>> {
    auto shown = varying_axes(store, sweep.id);
    if (!shown) return tl::unexpected(shown.error());
    return std::make_unique<ProgressLine>(io, sweep.name, std::move(*shown), quiet);
  };
}

}  // namespace sweep::cli
