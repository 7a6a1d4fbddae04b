#include "orchestrator/cli/status_board.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ostream>

#include "orchestrator/driver/strategy_forecast.h"
#include "orchestrator/driver/sweep_status.h"

namespace sweep::cli {
namespace {

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

void StatusBoard::on_snapshot(const run::Snapshot& shot) {
  auto view = answers::status_view(driver::progress_of(sweep_, shot), shown_);
  if (const auto left_s = driver::seconds_left(store_, sweep_, shot)) view.left_s = *left_s;
  if (!io_.out_is_terminal) {
    view.elapsed_s.reset(), view.left_s.reset();  // a line says what changed, not that time goes by
    const std::string line = answers::status_line(view);
    if (line != said_) io_.out << line << std::flush;
    said_ = line;
    return;
  }
  if (auto added = driver::add_details(view, store_, sweep_, shown_); !added)
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
