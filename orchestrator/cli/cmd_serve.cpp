// sweep serve: the heatmap page of a sweep on loopback, filling in while the sweep runs.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/expected.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/status_board.h"
#include "orchestrator/serve/server.h"

namespace sweep::cli {
namespace {

struct ServeCommand {
  SweepSelector where;
  answers::HeatmapOptions options;
  int port = 0;
};

// The page and its data, made anew when the database has changed, and not more often than costs little.
class LivePage {
 public:
  LivePage(Opened opened, answers::HeatmapOptions options)
      : opened_(std::move(opened)), options_(std::move(options)) {
    if (options_.title.empty()) options_.title = opened_.sweep.name;
    options_.question = opened_.sweep.question;
  }

  Expected<void> renew() {
    const auto now = Clock::now();
    if (made_ && now < next_look_) return {};
    const auto version = opened_.store->version();
    if (!version) return tl::unexpected<Error>(version.error());
    if (made_ && *version == version_) return {};
    const auto rows = opened_.store->results(opened_.sweep.id);
    if (!rows) return tl::unexpected<Error>(rows.error());
    const auto map = answers::heatmap(*rows, options_);
    if (!map) return tl::unexpected<Error>(map.error());
    options_.rows = map->rows.name(), options_.cols = map->cols.name();  // the page keeps its axes
    page_ = std::make_shared<const std::string>(answers::to_live_html(*map, *rows));
    data_ = std::make_shared<const std::string>(answers::page_data(*map, *rows));
    version_ = *version, made_ = true, ++made_times_;
    next_look_ = Clock::now() + kCostShare * (Clock::now() - now);
    return {};
  }

  Expected<serve::Document> find(std::string_view name) {
    if (name == "progress.json") return progress();
    if (!name.empty() && name != "data.json") return serve::Document{};
    SWEEP_TRY(renew());
    if (name.empty()) return serve::Document{"text/html; charset=utf-8", page_, ""};
    return serve::Document{"application/json", data_, std::to_string(made_times_)};
  }

 private:
  // The document of `status --json`, and the time left in words.
  Expected<serve::Document> progress() {
    constexpr i64 kEvents = 5;
    const auto shot = snapshot_of(*opened_.store, opened_.sweep);
    if (!shot) return tl::unexpected<Error>(shot.error());
    auto document = status_document(*opened_.store, opened_.sweep, *shot, kEvents);
    if (!document) return tl::unexpected<Error>(document.error());
    const auto left = shot->seconds_left;
    (*document)["left"] = left ? nlohmann::json(answers::rough_duration(*left)) : nlohmann::json(nullptr);
    return serve::Document{"application/json", std::make_shared<const std::string>(document->dump()), ""};
  }

  using Clock = std::chrono::steady_clock;
  static constexpr int kCostShare = 10;  // at most a tenth of the time goes into making the page

  Opened opened_;
  answers::HeatmapOptions options_;
  std::shared_ptr<const std::string> page_, data_;
  i64 version_ = 0, made_times_ = 0;
  bool made_ = false;
  Clock::time_point next_look_{};
};

// How a browser on another machine reaches it.
std::string tunnel_line(const std::string& address) {
  const auto from = address.rfind(':') + 1;
  const std::string port = address.substr(from, address.find('/', from) - from);
  char host[256] = "HOST";
  if (::gethostname(host, sizeof host) == 0) host[sizeof host - 1] = '\0';
  return fmt::format("from another machine: ssh -L {0}:127.0.0.1:{0} {1}, then the same address there\n",
                     port, answers::safe_text(host));
}

int serve_sweep(Io& io, const ServeCommand& o) {
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const std::string name = opened->sweep.name;
  LivePage page(std::move(*opened), o.options);
  if (auto fine = page.renew(); !fine) return refuse(io, fine.error());
  const auto served = serve::serve_until_signal(
      o.port, [&](std::string_view document) { return page.find(document); },
      [&](const std::string& address) {
        io.err << fmt::format("sweep {}: open this address in a browser on this machine; Ctrl-C ends\n", name)
               << tunnel_line(address);
        io.out << address << std::endl;
      });
  if (!served) return refuse(io, served.error());
  return kAnswered;
}

}  // namespace

void add_serve(Registry r) {
  auto* c = r.app.add_subcommand("serve", "the heatmap page on loopback, filling in while the sweep runs");
  auto o = std::make_shared<ServeCommand>();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("--port", o->port, "port of 127.0.0.1; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  c->add_option("--rows", o->options.rows,
                "axis of the rows; absent: of the two axes that matter most the one with more values");
  c->add_option("--cols", o->options.cols, "axis of the columns; absent: the other one");
  c->add_option("--value", o->options.value, "metric shown")->capture_default_str();
  c->add_option("--by", o->options.objective,
                "metric that decides which configuration is best; absent: the value");
  c->callback([r, o] { r.chosen = [r, o] { return serve_sweep(r.io, *o); }; });
}

}  // namespace sweep::cli
