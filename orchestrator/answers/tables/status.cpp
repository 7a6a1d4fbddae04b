#include "orchestrator/answers/tables/status.h"

#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"

namespace sweep::answers {
namespace {

// Trials to run: what the plan pruned is none, and never counts as done.
i64 to_run(const StatusView& view) {
  return std::max<i64>(0, view.total - counts(view).pruned);
}

double share_done(const StatusView& view) {
  const i64 all = to_run(view);
  return all == 0 ? 1
                  : std::clamp(static_cast<double>(counts(view).done()) / static_cast<double>(all), 0.0, 1.0);
}

std::string bar(const StatusView& view, std::size_t cells) {
  const auto full = static_cast<std::size_t>(share_done(view) * static_cast<double>(cells));
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(cells - full, '-'));
}

// Rounded down, so that 100 % means all.
i64 percent(const StatusView& view) {
  return static_cast<i64>(share_done(view) * 100);
}

void add(std::vector<std::string>& parts, i64 count, std::string_view word) {
  if (count > 0) parts.push_back(fmt::format("{} {}", count, word));
}

std::vector<std::string> count_parts(const StatusView& view) {
  const StatusCounts c = counts(view);
  std::vector<std::string> parts;
  add(parts, c.ok, "ok");
  add(parts, c.oom, "oom");
  add(parts, c.unsupported, "unsupported");
  add(parts, c.failed, "failed");
  add(parts, view.running, "running");
  return parts;
}

std::string best_part(const StatusView::Best& best) {
  const Column* column = find_column(best.metric);
  const Scale scale = scale_for(column ? column->unit : "", best.value);
  std::string out = scale(best.value);
  if (best.metric.starts_with("useful_")) out += " useful";
  if (!scale.unit.empty()) out += " " + scale.unit;
  if (best.metric.ends_with("_gpu")) out += " per rank";
  if (!best.configuration.empty()) out += fmt::format(" ({})", safe_text(best.configuration));
  return out;
}

std::string left(double seconds) {
  return (seconds < 1 ? "" : "about ") + rough_duration(seconds);
}

std::vector<std::string> time_and_best(const StatusView& view) {
  std::vector<std::string> parts;
  const bool finished = counts(view).done() >= to_run(view);
  if (!finished && view.left_s) parts.push_back(left(*view.left_s) + " left");
  if (!finished && !view.left_s && counts(view).ok == 0)
    parts.emplace_back("time left not known before the first result");
  if (finished && view.elapsed_s) parts.push_back(fmt::format("took {}", duration(*view.elapsed_s)));
  if (view.best) parts.push_back(fmt::format("best {}", best_part(*view.best)));
  return parts;
}

std::vector<std::string> all_parts(const StatusView& view) {
  std::vector<std::string> parts = count_parts(view);
  for (auto& part : time_and_best(view)) parts.push_back(std::move(part));
  return parts;
}

// A heading before the first of the texts, each on a line of its own.
void list(std::vector<std::string>& lines, std::string_view heading, const std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    lines.push_back(fmt::format("{:<9}{}", i == 0 ? heading : "", safe_text(texts[i])));
}

}  // namespace

StatusCounts counts(const StatusView& view) {
  StatusCounts out;
  for (const auto& [outcome, count] : view.by_outcome) {
    switch (outcome) {
      case Outcome::kOk:
        out.ok += count;
        break;
      case Outcome::kOom:
        out.oom += count;
        break;
      case Outcome::kPruned:
        out.pruned += count;
        break;
      case Outcome::kUnsupported:
        out.pruned += count - view.ran_unsupported;
        out.unsupported += view.ran_unsupported;
        break;
      default:
        out.failed += count;
    }
  }
  return out;
}

std::string status_bar(const StatusView& view, std::size_t width) {
  const std::size_t cells = width == 0 || width >= 100 ? 20 : width >= 60 ? 12 : 6;
  const std::string head =
      fmt::format("{} {:>3} %  {}/{}", bar(view, cells), percent(view), counts(view).done(), to_run(view));
  const auto with = [&](const std::vector<std::string>& parts) {
    return fmt::format("{}  {}", head, fmt::join(parts, "  "));
  };
  const auto parts = all_parts(view);
  const std::string out = parts.empty() ? head : with(parts);
  if (width == 0 || display_width(out) <= width) return out;
  // Counts give way before the best configuration is cut where it differs from others.
  if (const std::string brief = with(time_and_best(view)); display_width(brief) <= width) return brief;
  return fit(out, width);
}

std::string status_line(const StatusView& view) {
  const i64 pruned = counts(view).pruned;
  const auto parts = all_parts(view);
  return fmt::format("{}: {}/{} done{}{}{}\n", safe_text(view.sweep), counts(view).done(), to_run(view),
                     pruned > 0 ? fmt::format(" ({} pruned)", pruned) : "", parts.empty() ? "" : ": ",
                     fmt::join(parts, ", "));
}

std::string status_block(const StatusView& view, std::size_t width) {
  const std::size_t cells = std::clamp<std::size_t>(width == 0 ? 40 : width / 2, 10, 60);
  std::vector<std::string> lines;
  lines.push_back(fmt::format("sweep    {}", safe_text(view.sweep)));
  lines.push_back(fmt::format("done     {} {} %  {} of {}", bar(view, cells), percent(view),
                              counts(view).done(), to_run(view)));
  auto sorted = view.by_outcome;
  std::sort(sorted.begin(), sorted.end());
  std::string outcomes;
  for (const auto& [outcome, count] : sorted) {
    if (count > 0)
      outcomes += fmt::format("{}{} {}", outcomes.empty() ? "" : ", ", count, to_string(outcome));
  }
  if (!outcomes.empty()) lines.push_back("outcomes " + outcomes);
  lines.push_back(fmt::format("to do    {} pending, {} running", view.pending, view.running));
  if (view.elapsed_s) lines.push_back(fmt::format("elapsed  {}", duration(*view.elapsed_s)));
  if (view.left_s && counts(view).done() < to_run(view)) lines.push_back("left     " + left(*view.left_s));
  if (view.best) {
    lines.push_back(fmt::format("best     {}{}", best_part(*view.best),
                                view.best->trial_id.empty()
                                    ? std::string()
                                    : fmt::format("  trial {}", safe_text(view.best->trial_id))));
  }
  if (!view.gpu_hours.empty()) lines.push_back("used     " + view.gpu_hours);
  list(lines, "saved", view.shortcuts);
  list(lines, "now", view.now);
  list(lines, "held", view.held);
  list(lines, "excluded", view.excluded);
  list(lines, "events", view.events);
  std::string out;
  for (const std::string& line : lines) out += (width == 0 ? line : fit(line, width)) + "\n";
  return out;
}

}  // namespace sweep::answers
