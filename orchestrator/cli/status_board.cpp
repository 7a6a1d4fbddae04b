#include "orchestrator/cli/status_board.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/cli/gpu_hours.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/strategy_forecast.h"
#include "orchestrator/grid/site.h"
#include "orchestrator/run/run_sweep.h"

namespace sweep::cli {
namespace {

constexpr i64 kEvents = 5;

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

}  // namespace

answers::Progress progress_of(const store::SweepRow& sweep, const run::Snapshot& shot) {
  return {sweep,
          shot.counts,
          shot.best,
          shot.elapsed_s > 0 ? std::optional(shot.elapsed_s) : std::nullopt,
          driver::seconds_of_all(sweep, shot),
          shot.best_by};
}

Expected<answers::RunDetails> details_of(store::Store& store, const store::SweepRow& sweep, i64 events) {
  const auto site = grid::read_site(grid::site_files());
  const auto limit = driver::smaller_limit(sweep.options.gpu_hours, site ? site->gpu_hours : std::nullopt);
  const auto hours = held_hours(store, sweep, limit);
  if (!hours) return tl::unexpected(hours.error());
  return answers::run_details(store, sweep.id, *hours, events);
}

Expected<run::Snapshot> snapshot_of(store::Store& store, const store::SweepRow& sweep) {
  auto shot = run::take_snapshot(store, sweep.id, 0);
  if (!shot) return shot;
  const auto left = driver::seconds_left(store, sweep, *shot);
  if (!left) return tl::unexpected(left.error());
  shot->seconds_left = *left;
  return shot;
}

Expected<nlohmann::json> status_document(store::Store& store, const store::SweepRow& sweep,
                                         const run::Snapshot& shot, i64 events) {
  const auto holder = store.lease(sweep.id);
  if (!holder) return tl::unexpected(holder.error());
  const auto details = details_of(store, sweep, events);
  if (!details) return tl::unexpected(details.error());
  return answers::progress_json(progress_of(sweep, shot), *details, *holder);
}

Expected<void> add_details(answers::StatusView& view, store::Store& store, const store::SweepRow& sweep,
                           std::span<const answers::Field> shown) {
  const auto holder = driver::holder_of(store, sweep.id);
  if (!holder) return tl::unexpected(holder.error());
  if (*holder) view.now.push_back(driver::standing_text(**holder));
  if (!*holder && view.running > 0)
    view.now.push_back("not running: the last run died unexpectedly; `sweep resume` continues it");
  const auto details = details_of(store, sweep, kEvents);
  if (!details) return tl::unexpected(details.error());
  answers::add_details(view, *details, shown);
  return {};
}

void StatusBoard::on_snapshot(const run::Snapshot& shot) {
  auto view = answers::status_view(progress_of(sweep_, shot), shown_);
  if (const auto left_s = driver::seconds_left(store_, sweep_, shot)) view.left_s = *left_s;
  if (!io_.out_is_terminal) {
    view.elapsed_s.reset(), view.left_s.reset();  // a line says what changed, not that time goes by
    const std::string line = answers::status_line(view);
    if (line != said_) io_.out << line << std::flush;
    said_ = line;
    return;
  }
  if (auto added = add_details(view, store_, sweep_, shown_); !added)
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
