// sweep query: people's own SQL, and saved queries.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <ostream>
#include <thread>

#include "base/text.h"
#include "orchestrator/answers/saved_queries.h"
#include "orchestrator/answers/tables/tables.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/export/results.h"

namespace sweep::cli {
namespace {

struct QueryCommand {
  SweepSelector where;
  std::string sql;
  std::vector<std::string> set;
  double seconds = 120;
  bool json = false, csv = false, list = false;
};

constexpr i64 kMostHeap = i64{512} << 20;
constexpr double kLongestQuery = 1e9;  // seconds; a clock cannot count many more

volatile std::sig_atomic_t interrupted = 0;

// While it lives, Ctrl-C asks instead of ending the process.
class AskOnInterrupt {
 public:
  AskOnInterrupt() : before_(std::signal(SIGINT, [](int) { interrupted = 1; })) {}
  ~AskOnInterrupt() { std::signal(SIGINT, before_); }
  AskOnInterrupt(const AskOnInterrupt&) = delete;
  AskOnInterrupt& operator=(const AskOnInterrupt&) = delete;

 private:
  void (*before_)(int);
};

// SQLite asks between steps whether to go on. One step may run for minutes, as printf('%.*c', 1e9, 'x') does:
// then the process, which only reads, ends.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(double seconds)
      : end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        watch_([this] { watch(); }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      answered_ = true;
    }
    changed_.notify_all();
    watch_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  bool over() const { return Clock::now() >= end_; }

 private:
  static constexpr std::chrono::milliseconds kLook{200}, kPatience{1000};

  void watch() {
    std::optional<Clock::time_point> asked;  // since when SQLite should have stopped
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kLook, [this] { return answered_; })) {
      if (!asked && (over() || interrupted != 0)) asked = Clock::now();
      if (!asked || Clock::now() - *asked < kPatience) continue;
      constexpr std::string_view kEnded = "the query did not stop when asked: sweep ends\n";
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kEnded.data(), kEnded.size());
      ::_exit(interrupted != 0 ? kInterrupted : kBadInput);
    }
  }

  Clock::time_point end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool answered_ = false;
  std::thread watch_;
};

Expected<store::QueryOptions> query_options(const QueryCommand& o) {
  store::QueryOptions out;
  for (const auto& word : o.set) {
    const auto at = word.find('=');
    if (at == std::string::npos || at == 0) return fail("--set wants NAME=VALUE, not '" + word + "'");
    const std::string name = word.substr(0, at);
    if (std::ranges::find(out.values, name, [](const auto& value) { return value.first; }) !=
        out.values.end())
      return fail("--set gives " + name + " twice; leave one out");
    out.values.emplace_back(name, word.substr(at + 1));
  }
  return out;
}

int list_queries(Io& io) {
  Table table;
  table.columns = {"name", "what it answers", "where"};
  for (auto& query : answers::saved_queries(answers::query_folder()))
    table.rows.push_back({std::move(query.name), std::move(query.sentence), std::move(query.place)});
  io.out << answers::to_text_raw(table, io.out_is_terminal ? io.width : 0);
  return kAnswered;
}

int query(Io& io, const QueryCommand& o) {
  if (o.list) return list_queries(io);
  if (o.sql.empty())
    return refuse(io, {"give one SELECT statement, or the name of a saved query (--list shows them)"});
  std::string sql = o.sql;
  if (is_plain_name(sql)) {
    auto saved = answers::find_query(answers::query_folder(), sql);
    if (!saved) return refuse(io, saved.error());
    sql = std::move(saved->sql);
  }
  auto options = query_options(o);
  if (!options) return refuse(io, options.error());
  auto store = store::Store::open(o.where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  const AskOnInterrupt asking;
  Deadline deadline(o.seconds);
  options->most_heap = kMostHeap;
  options->stop = [&] { return interrupted != 0 || deadline.over(); };
  const auto table = (*store)->query(sql, *options);
  if (!table && table.error().message == store::kStopped) {
    if (interrupted != 0) return refuse(io, table.error()), kInterrupted;
    return refuse(
        io, {fmt::format("the query took more than {} s; give it longer with --seconds, add a LIMIT, or "
                         "read the file with the sqlite3 shell",
                         o.seconds)});
  }
  if (!table) return refuse(io, table.error());
  Expected<void> written;
  if (o.json)
    written = exports::write_json(io.out, *table);
  else if (o.csv)
    written = exports::write_csv(io.out, *table, {.raw_text = true, .line_end = "\n"});
  else
    written = write_output(io, "", answers::to_text_raw(*table, io.out_is_terminal ? io.width : 0));
  return written ? kAnswered : refuse(io, written.error());
}

}  // namespace

void add_query(Registry r) {
  auto* c = r.app.add_subcommand("query", "read-only SQL over the results (view: results)");
  auto o = std::make_shared<QueryCommand>();
  c->add_option("SQL", o->sql, "one SELECT statement, or the name of a saved query");
  add_db(*c, o->where);
  c->add_option("--set", o->set, "NAME=VALUE for :NAME in the SQL; may be given several times");
  c->add_option("--seconds", o->seconds, "how long the query may take")
      ->check(above_zero())
      ->check(CLI::Range(0.0, kLongestQuery))
      ->capture_default_str();
  c->add_flag("--list", o->list,
              "the saved queries: built in, and yours in ~/.config/sweep/queries/NAME.sql");
  auto* json = c->add_flag("--json", o->json, "as a JSON array of objects");
  c->add_flag("--csv", o->csv, "as CSV")->excludes(json);
  c->callback([r, o] { r.chosen = [r, o] { return query(r.io, *o); }; });
}

}  // namespace sweep::cli
