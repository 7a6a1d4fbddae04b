#include "orchestrator/cli/status_board.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ostream>

#include "orchestrator/cli/gpu_hours.h"
#include "orchestrator/cli/progress_line.h"
#include "orchestrator/cli/run_strategy.h"
#include "orchestrator/cli/shortcuts.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/grid/site.h"
#include "schema/sweep_options.h"

namespace sweep::cli {
namespace {

constexpr i64 kEvents = 5;
constexpr std::size_t kUnderWay = 4, kHosts = 4;

struct Size {
  std::size_t columns, rows;
};

// Asked each time: people resize their windows.
Size terminal_size(const Io& io) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 && size.ws_row > 2)
    return {size.ws_col, size.ws_row};
  return {static_cast<std::size_t>(io.width), 24};
}

std::string count_of(i64 count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

// "a0001-0f3c local, 2 nodes (n1, n2), 12 results"
std::string held_line(const AllocationStatus& held) {
  std::string names;
  for (std::size_t i = 0; i < std::min(held.hosts.size(), kHosts); ++i)
    names += (i ? ", " : "") + held.hosts[i];
  if (held.hosts.size() > kHosts) names += ", ...";
  const auto nodes = static_cast<i64>(held.hosts.size());
  return fmt::format("{} {}{}, {}", held.row.id, held.row.launcher,
                     nodes ? fmt::format(", {} ({})", count_of(nodes, "node"), names) : ", not started yet",
                     count_of(held.results, "result"));
}

Expected<AllocationStatus> allocation_status(store::Store& store, store::AllocationRow row) {
  const auto nodes = store.nodes_of(row.id);
  if (!nodes) return tl::unexpected(nodes.error());
  const auto results = store.results_in(row.id);
  if (!results) return tl::unexpected(results.error());
  auto attempts = store.unfinished_attempts(row.id);
  if (!attempts) return tl::unexpected(attempts.error());
  std::erase_if(*attempts, [](const auto& attempt) { return attempt.state != State::kRunning; });
  AllocationStatus out{std::move(row), {}, *results, std::move(*attempts)};
  for (const auto& node : *nodes) out.hosts.push_back(node.host);
  return out;
}

Expected<void> add_allocations(answers::StatusView& view, store::Store& store, i64 sweep,
                               const std::vector<answers::Field>& shown) {
  const auto held = allocation_statuses(store, sweep);
  if (!held) return tl::unexpected(held.error());
  for (const auto& each : *held) {
    view.held.push_back(held_line(each));
    for (const auto& attempt : each.running) {
      if (view.now.size() > kUnderWay) break;
      ResultRow trial;
      trial.trial = attempt.attempt.trial;
      view.now.push_back(fmt::format("{}  {}", attempt.trial_id, answers::setting_text(trial, shown)));
    }
  }
  return {};
}

}  // namespace

Expected<std::vector<AllocationStatus>> allocation_statuses(store::Store& store, i64 sweep) {
  auto open = store.open_allocations(sweep);
  if (!open) return tl::unexpected(open.error());
  std::vector<AllocationStatus> out;
  for (auto& row : *open) {
    auto held = allocation_status(store, std::move(row));
    if (!held) return tl::unexpected(held.error());
    out.push_back(std::move(*held));
  }
  return out;
}

std::optional<double> gpu_hour_limit(const store::SweepRow& sweep) {
  const auto kept = sweep_options_from(sweep.options_json);
  const auto site = grid::read_site(grid::site_files());
  return driver::smaller_limit(kept ? kept->gpu_hours : std::nullopt, site ? site->gpu_hours : std::nullopt);
}

Expected<void> add_details(answers::StatusView& view, store::Store& store, const store::SweepRow& sweep,
                           i64 running, const std::vector<answers::Field>& shown) {
  const auto holder = driver::holder_of(store, sweep.id);
  if (!holder) return tl::unexpected(holder.error());
  if (*holder) view.now.push_back(driver::standing_text(**holder));
  if (!*holder && running > 0)
    view.now.push_back("not running: the last run died unexpectedly; `sweep resume` continues it");
  if (auto added = add_allocations(view, store, sweep.id, shown); !added) return added;
  auto held = held_hours(store, sweep, gpu_hour_limit(sweep));
  if (!held) return tl::unexpected(held.error());
  view.gpu_hours = std::move(*held);
  auto short_cut = shortcuts(store, sweep.id);
  if (!short_cut) return tl::unexpected(short_cut.error());
  view.shortcuts = std::move(*short_cut);
  const auto events = store.events(sweep.id, kEvents);
  if (!events) return tl::unexpected(events.error());
  for (const auto& row : events->rows)
    view.events.push_back(fmt::format("{}  {}: {}", std::get<std::string>(row[0]),
                                      std::get<std::string>(row[1]), std::get<std::string>(row[2])));
  return {};
}

void StatusBoard::on_snapshot(const run::Snapshot& shot) {
  auto view = status_view(sweep_.name, shot, shown_);
  if (const auto left_s = seconds_left(store_, sweep_, shot)) view.left_s = *left_s;
  if (!io_.out_is_terminal) {
    view.elapsed_s.reset(), view.left_s.reset();  // a line says what changed, not that time goes by
    const std::string line = answers::status_line(view);
    if (line != said_) io_.out << line << std::flush;
    said_ = line;
    return;
  }
  if (auto added = add_details(view, store_, sweep_, shot.counts.running, shown_); !added)
    view.events.push_back(added.error().message);
  const Size size = terminal_size(io_);
  draw(answers::status_block(view, size.columns - 1), size.rows - 1);
}

// Back to the first line of the picture before, then line by line over it, and away with what is below.
void StatusBoard::draw(const std::string& block, std::size_t rows) {
  std::string out = drawn_ > 0 ? fmt::format("\x1b[{}F", drawn_) : "";
  drawn_ = 0;
  for (std::size_t at = 0; at < block.size() && drawn_ < rows; ++drawn_) {
    const std::size_t end = block.find('\n', at);
    out += block.substr(at, end - at) + "\x1b[K\n";
    at = end + 1;
  }
  io_.out << out << "\x1b[J" << std::flush;
}

}  // namespace sweep::cli
