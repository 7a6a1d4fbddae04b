#include "orchestrator/cli/board.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/cli/gpu_hours.h"
#include "orchestrator/cli/holder.h"
#include "orchestrator/cli/live.h"
#include "orchestrator/grid/site.h"
#include "schema/codec.h"

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
Expected<std::string> held_line(store::Store& store, const store::AllocationRow& row) {
  store::QueryOptions of;
  of.values = {{"allocation", row.id}};
  const auto hosts =
      store.query("SELECT host FROM environment WHERE allocation = :allocation ORDER BY node", of);
  if (!hosts) return tl::unexpected(hosts.error());
  const auto results = store.query(
      "SELECT count(*) FROM attempt a JOIN result r ON r.attempt = a.id WHERE a.allocation = :allocation",
      of);
  if (!results) return tl::unexpected(results.error());
  std::string names;
  for (std::size_t i = 0; i < std::min(hosts->rows.size(), kHosts); ++i)
    names += (i ? ", " : "") + std::get<std::string>(hosts->rows[i][0]);
  if (hosts->rows.size() > kHosts) names += ", ...";
  const i64 nodes = static_cast<i64>(hosts->rows.size());
  return fmt::format("{} {}{}, {}", row.id, row.launcher,
                     nodes ? fmt::format(", {} ({})", count_of(nodes, "node"), names) : ", not started yet",
                     count_of(std::get<i64>(results->rows[0][0]), "result"));
}

Expected<void> add_allocations(report::StatusView& view, store::Store& store, i64 sweep,
                               const std::vector<report::Field>& shown) {
  const auto open = store.open_allocations(sweep);
  if (!open) return tl::unexpected(open.error());
  for (const auto& row : *open) {
    auto line = held_line(store, row);
    if (!line) return tl::unexpected(line.error());
    view.held.push_back(std::move(*line));
    const auto under_way = store.unfinished_attempts(row.id);
    if (!under_way) return tl::unexpected(under_way.error());
    for (const auto& attempt : *under_way) {
      if (attempt.state != State::kRunning || view.now.size() > kUnderWay) continue;
      ResultRow trial;
      trial.trial = attempt.attempt.trial;
      view.now.push_back(fmt::format("{}  {}", attempt.trial_id, report::setting_text(trial, shown)));
    }
  }
  return {};
}

// Of GPU-hours: what was said when the sweep was planned, and what the site allows.
std::optional<double> limit_of(const store::SweepRow& sweep) {
  const auto kept = parse_json(sweep.options_json);
  const auto site = grid::read_site(grid::site_files());
  std::optional<double> own;
  if (kept && kept->is_object() && kept->contains("gpu_hours")) own = kept->at("gpu_hours").get<double>();
  return smaller_limit(own, site ? site->gpu_hours : std::nullopt);
}

}  // namespace

Expected<void> add_details(report::StatusView& view, store::Store& store, const store::SweepRow& sweep,
                           i64 running, const std::vector<report::Field>& shown) {
  const auto holder = holder_of(store, sweep.id);
  if (!holder) return tl::unexpected(holder.error());
  if (*holder) view.now.push_back(standing_text(**holder));
  if (!*holder && running > 0)
    view.now.push_back("nobody runs it: the last run ended without a word; `sweep resume` goes on");
  if (auto added = add_allocations(view, store, sweep.id, shown); !added) return added;
  auto held = held_hours(store, sweep, limit_of(sweep));
  if (!held) return tl::unexpected(held.error());
  view.gpu_hours = std::move(*held);
  const auto events = store.events(sweep.id, kEvents);
  if (!events) return tl::unexpected(events.error());
  for (const auto& row : events->rows)
    view.events.push_back(fmt::format("{}  {}: {}", std::get<std::string>(row[0]),
                                      std::get<std::string>(row[1]), std::get<std::string>(row[2])));
  return {};
}

void Board::on_snapshot(const run::Snapshot& shot) {
  auto view = status_view(sweep_.name, shot, shown_);
  if (!io_.out_is_terminal) {
    view.elapsed_s.reset(), view.left_s.reset();  // a line says what changed, not that time goes by
    const std::string line = report::status_line(view);
    if (line != said_) io_.out << line << std::flush;
    said_ = line;
    return;
  }
  if (auto added = add_details(view, store_, sweep_, shot.counts.running, shown_); !added)
    view.events.push_back(added.error().message);
  const Size size = terminal_size(io_);
  draw(report::status_block(view, size.columns - 1), size.rows - 1);
}

// Back to the first line of the picture before, then line by line over it, and away with what is below.
void Board::draw(const std::string& block, std::size_t rows) {
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
