// sweep serve: the heatmap page of a sweep on loopback, filling in while the sweep runs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>

#include "base/expected.h"
#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/sweeps_page.h"
#include "orchestrator/answers/pages/trial_page.h"
#include "orchestrator/answers/tables/sweeps_table.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/page_options.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/sweep_status.h"
#include "orchestrator/serve/server.h"
#include "schema/ranking.h"

namespace sweep::cli {
namespace {

struct ServeCommand {
  SweepSelector where;
  answers::HeatmapOptions options;
  int port = 0;
};

constexpr std::string_view kHtml = "text/html; charset=utf-8";

// The page of one sweep, its data and its trials' pages. Page and data are made anew when the database has changed, and not more often than costs little.
class LivePage {
 public:
  LivePage(Opened opened, answers::HeatmapOptions options, std::string db)
      : opened_(std::move(opened)), options_(std::move(options)), db_(std::move(db)) {
    if (options_.title.empty()) options_.title = opened_.sweep.name;
    options_.question = opened_.sweep.question;
  }

  store::Store& store() { return *opened_.store; }

  Expected<void> renew() {
    const auto now = Clock::now();
    if (made_ && now < next_look_) return {};
    const auto version = opened_.store->version();
    if (!version) return tl::unexpected<Error>(version.error());
    if (made_ && *version == version_) return {};
    const auto rows = opened_.store->results(opened_.sweep.id);
    if (!rows) return tl::unexpected<Error>(rows.error());
    auto options = options_;
    if (options.value.empty()) options.value = usual_metric(*rows);
    const auto map = answers::heatmap(*rows, options);
    if (!map) return tl::unexpected<Error>(map.error());
    options_.rows = map->rows.name(), options_.cols = map->cols.name();  // the page keeps its axes
    page_ = std::make_shared<const std::string>(answers::to_live_html(*map, *rows));
    data_ = std::make_shared<const std::string>(answers::page_data(*map, *rows));
    version_ = *version, made_ = true, ++made_times_;
    next_look_ = Clock::now() + kCostShare * (Clock::now() - now);
    return {};
  }

  Expected<serve::Document> find(std::string_view name) {
    SWEEP_TRY(store().look_again());
    if (name == "progress.json") return progress();
    if (name.starts_with(kTrial)) return trial(std::string(name.substr(kTrial.size())));
    if (!name.empty() && name != "data.json") return serve::Document{};
    SWEEP_TRY(renew());
    if (name.empty()) return serve::Document{std::string(kHtml), page_, ""};
    return serve::Document{"application/json", data_, std::to_string(made_times_)};
  }

 private:
  static constexpr std::string_view kTrial = "trial/";

  // The page is made from the database as it is now. An unknown trial has no page.
  Expected<serve::Document> trial(const std::string& id) {
    const auto known = opened_.store->find_trial(opened_.sweep.id, id);
    if (!known || *known != id) return serve::Document{};
    auto page = answers::trial_page(*opened_.store, opened_.sweep, id);
    if (!page) return tl::unexpected<Error>(page.error());
    page->db = db_, page->made = page_stamp().sentence(), page->back = "../";
    return serve::Document{std::string(kHtml),
                           std::make_shared<const std::string>(answers::trial_html(*page)), ""};
  }

  // The document of `status --json`, and the time left in words.
  Expected<serve::Document> progress() {
    constexpr i64 kEvents = 5;
    const auto shot = driver::snapshot_of(*opened_.store, opened_.sweep);
    if (!shot) return tl::unexpected<Error>(shot.error());
    auto document = driver::status_document(*opened_.store, opened_.sweep, *shot, kEvents);
    if (!document) return tl::unexpected<Error>(document.error());
    const auto left = shot->seconds_left;
    (*document)["left"] = left ? nlohmann::json(answers::rough_duration(*left)) : nlohmann::json(nullptr);
    return serve::Document{"application/json", std::make_shared<const std::string>(document->dump()), ""};
  }

  using Clock = std::chrono::steady_clock;
  static constexpr int kCostShare = 10;  // a tenth of the time, at most, goes into making the page

  Opened opened_;
  answers::HeatmapOptions options_;
  std::string db_;
  std::shared_ptr<const std::string> page_, data_;
  i64 version_ = 0, made_times_ = 0;
  bool made_ = false;
  Clock::time_point next_look_{};
};

// The number of a deleted sweep is the next one's: its address says when which name was made, too.
std::string address_of(const store::SweepRow& sweep) {
  return fmt::format("{}-{:016x}", sweep.id, fnv1a(fmt::format("{} {}", sweep.created_unix_ns, sweep.name)));
}

// All that is served: the page of the one sweep that was named or is alone in the file, else an index of the sweeps
// with the page of each under `sweep/ADDRESS/`. A sweep that was deleted has no page.
class LiveSite {
 public:
  LiveSite(ServeCommand command, bool with_index) : command_(std::move(command)), with_index_(with_index) {}

  Expected<LivePage*> page_of(const store::SweepRow& sweep) {
    const std::string address = address_of(sweep);
    if (const auto found = pages_.find(address); found != pages_.end()) return &found->second;
    auto opened = open_sweep({command_.where.db, sweep.name}, store::Mode::kReadOnly);
    if (!opened) return tl::unexpected<Error>(opened.error());
    const auto [at, added] =
        pages_.try_emplace(address, std::move(*opened), command_.options, command_.where.db);
    return &at->second;
  }

  Expected<serve::Document> find(std::string_view name) {
    SWEEP_TRY(store().look_again());
    const auto known = store().sweeps();
    if (!known) return tl::unexpected<Error>(known.error());
    if (!with_index_) return find_in(*known, pages_.begin()->first, name);
    if (name.empty()) return index(*known);
    const auto slash = name.find('/', kSweep.size());
    if (!name.starts_with(kSweep) || slash == std::string_view::npos) return serve::Document{};
    return find_in(*known, name.substr(kSweep.size(), slash - kSweep.size()), name.substr(slash + 1));
  }

 private:
  static constexpr std::string_view kSweep = "sweep/";

  store::Store& store() { return pages_.begin()->second.store(); }

  Expected<serve::Document> find_in(std::span<const store::SweepRow> known, std::string_view address,
                                    std::string_view name) {
    const auto sweep = std::ranges::find(known, address, address_of);
    if (sweep == known.end()) return serve::Document{};
    const auto page = page_of(*sweep);
    if (!page) return tl::unexpected<Error>(page.error());
    return (*page)->find(name);
  }

  Expected<serve::Document> index(std::span<const store::SweepRow> known) {
    const auto listed = answers::listed_sweeps(
        store(), [&](const store::SweepRow& sweep) { return driver::run_by(store(), sweep); });
    if (!listed) return tl::unexpected<Error>(listed.error());
    std::vector<std::string> links;
    for (const auto& sweep : known) links.push_back(fmt::format("{}{}/", kSweep, address_of(sweep)));
    auto page = std::make_shared<const std::string>(
        answers::sweeps_html(answers::sweeps_table(*listed), links, command_.where.db));
    return serve::Document{std::string(kHtml), std::move(page), ""};
  }

  ServeCommand command_;
  bool with_index_;
  std::map<std::string, LivePage> pages_;  // pages by address; never empty once it serves
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
  const auto sweeps = opened->store->sweeps();
  if (!sweeps) return refuse(io, sweeps.error());
  const bool with_index = !o.where.sweep && sweeps->size() > 1;
  const std::string what = with_index ? fmt::format("{} sweeps", sweeps->size())
                                      : "sweep " + answers::safe_text(opened->sweep.name);
  LiveSite site(o, with_index);
  const auto page = site.page_of(opened->sweep);
  if (!page) return refuse(io, page.error());
  if (auto fine = (*page)->renew(); !fine) return refuse(io, fine.error());
  const auto served = serve::serve_until_signal(
      o.port, [&](std::string_view document) { return site.find(document); },
      [&](const std::string& address) {
        io.err << fmt::format("{}: open this address in a browser on this machine; Ctrl-C ends\n", what)
               << tunnel_line(address);
        if (io.json)
          print_document(
              io, {{"address", address},
                   {"db", o.where.db},
                   {"sweep", with_index ? nlohmann::json(nullptr) : nlohmann::json(opened->sweep.name)}});
        else
          io.out << address << '\n';
        io.out << std::flush;
      });
  if (!served) return refuse(io, served.error());
  return kAnswered;
}

}  // namespace

void add_serve(Registry r) {
  auto* c = r.app.add_subcommand("serve",
                                 "the heatmap page on loopback, filling in while the sweep runs, with a page "
                                 "for each trial; an index where the "
                                 "database has several sweeps and none is named");
  auto o = std::make_shared<ServeCommand>();
  add_sweep(*c, o->where);
  c->get_option("SWEEP")->description(
      "name of the sweep; absent: the only one of the database, or an index of its sweeps");
  add_db(*c, o->where);
  c->add_option("--port", o->port, "port of 127.0.0.1; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  add_heatmap_options(*c, o->options);
  add_json(*c);
  c->callback([r, o] { r.chosen = [r, o] { return serve_sweep(r.io, *o); }; });
}

}  // namespace sweep::cli
