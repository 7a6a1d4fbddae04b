// Removing a sweep, and copying the whole file.
#include <fmt/format.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/text.h"
#include "orchestrator/store/opening.h"
#include "orchestrator/store/store_file.h"
#include "orchestrator/store/upgrade.h"

namespace sweep::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEntries = "(SELECT key FROM plan_entry WHERE sweep = ?)";
constexpr std::string_view kAttempts =
    "(SELECT id FROM attempt WHERE entry IN (SELECT key FROM plan_entry WHERE sweep = ?))";
constexpr std::string_view kAllocations = "(SELECT id FROM allocation WHERE sweep = ?)";

std::vector<fs::path> spools_of(Transaction& work, i64 sweep) {
  std::vector<fs::path> out;
  auto rows = work.rows("SELECT spool FROM allocation WHERE sweep = ? ORDER BY id", sweep);
  while (rows.next()) out.emplace_back(rows.get<std::string>(0));
  return out;
}

void refuse_open_allocations(Transaction& work, const SweepRow& sweep) {
  const auto open =
      work.one<i64>("SELECT count(*) FROM allocation WHERE sweep = ? AND ended_unix_ns IS NULL", sweep.id);
  if (open.value_or(0) > 0)
    work.refuse(Error{fmt::format("sweep '{}' has {} allocations that are not known to have ended; `sweep "
                                  "clean --yes` ends what is left of them, `sweep resume` takes them over",
                                  sweep.name, *open),
                      ErrorKind::kRefused, sweep.name});
}

// Another sweep's answer that is an attempt of this one (--reuse) would be gone too.
void refuse_answers_of_others(Transaction& work, const SweepRow& sweep) {
  auto rows = work.rows(R"(
      SELECT s.name, count(*) FROM plan_entry p JOIN sweep s ON s.id = p.sweep
      WHERE p.sweep <> ?1 AND p.final_attempt IN
        (SELECT id FROM attempt WHERE entry IN (SELECT key FROM plan_entry WHERE sweep = ?1))
      GROUP BY s.id ORDER BY s.id LIMIT 1)",
                        sweep.id);
  if (!rows.next()) return;
  const auto name = rows.get<std::string>(0);
  const auto answers = rows.get<i64>(1);
  work.refuse(Error{fmt::format("sweep '{}' has taken over {} of '{}' (run --reuse); delete '{}' first, or "
                                "`sweep resume {} --retry ok` so that it has results of its own",
                                name, counted(answers, "result"), sweep.name, name, name),
                    ErrorKind::kRefused, sweep.name});
}

// Each entry that is removed would make every other one of its block unpacked: quadratic, and for nothing.
void remove_entries(Transaction& work, i64 sweep) {
  constexpr std::string_view kTrigger = "loose_entry_gone";
  const auto sql = work.one<std::string>("SELECT sql FROM sqlite_master WHERE name = ?", kTrigger);
  work.run("DROP TRIGGER loose_entry_gone");
  work.run("DELETE FROM plan_entry WHERE sweep = ?", sweep);
  if (sql && !work.failed())
    if (auto made = work.db().execute(*sql); !made) work.refuse(made.error());
}

void remove_rows(Transaction& work, i64 sweep) {
  const auto without = [&](std::string_view table, std::string_view column, std::string_view of) {
    work.run(fmt::format("DELETE FROM {} WHERE {} IN {}", table, column, of), sweep);
  };
  work.run("UPDATE plan_entry SET final_attempt = NULL WHERE sweep = ?", sweep);
  without("step_sample", "attempt", kAttempts);
  without("rank_record", "attempt", kAttempts);
  without("result", "attempt", kAttempts);
  without("attempt", "entry", kEntries);
  without("loose", "entry", kEntries);
  work.run("DELETE FROM packed WHERE sweep = ?", sweep);
  remove_entries(work, sweep);
  work.run("DELETE FROM trial WHERE key NOT IN (SELECT trial FROM plan_entry)");
  without("environment", "allocation", kAllocations);
  for (const char* table : {"allocation", "event", "lease", "stop_request"})
    work.run(fmt::format("DELETE FROM {} WHERE sweep = ?", table), sweep);
  work.run("DELETE FROM meta WHERE substr(key, 1, length(?1)) = ?1", excluded_hosts_key(sweep));
  work.run("DELETE FROM sweep WHERE id = ?", sweep);
}

// The damage of the copy.
Expected<std::string> copy_into(Db& from, const fs::path& file, const fs::path& shown_as) {
  constexpr int kPatienceMs = 1000;
  auto copy = Db::open(file.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, kPatienceMs, shown_as);
  if (!copy) return tl::unexpected<Error>(copy.error());
  if (auto done = copy_pages(from, **copy, "main"); !done) return tl::unexpected<Error>(done.error());
  // One file, also in a folder that cannot be written.
  if (auto done = (*copy)->execute("PRAGMA journal_mode = DELETE"); !done)
    return tl::unexpected<Error>(done.error());
  return damage_of(**copy);
}

}  // namespace

Expected<RemovedSweep> SweepBook::remove_sweep(const SweepRow& sweep) {
  Transaction work(*file_.db, Transaction::kWrite);
  if (const auto holder = file_.leases.holder(work, sweep.id))
    work.refuse(
        Error{fmt::format("sweep '{}' is run by process {} on host '{}'; `sweep stop {}` ends the run",
                          sweep.name, holder->pid, holder->host, sweep.name),
              ErrorKind::kBusy, sweep.name});
  refuse_open_allocations(work, sweep);
  refuse_answers_of_others(work, sweep);
  RemovedSweep out;
  if (!work.failed()) out.spools = spools_of(work, sweep.id);
  out.trials = work.one<i64>("SELECT count(*) FROM plan_entry WHERE sweep = ?", sweep.id).value_or(0);
  out.attempts = work.one<i64>(fmt::format("SELECT count(*) FROM {}", kAttempts), sweep.id).value_or(0);
  if (!work.failed()) remove_rows(work, sweep.id);
  file_.counted.reset();
  return work.commit(std::move(out));
}

Expected<void> SweepBook::back_up(const fs::path& target, Damaged damaged) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error)))
    return fail(ErrorKind::kConflict, target.string(), "'{}' exists; name a file that does not",
                target.string());
  if (const auto folder = fs::absolute(target).parent_path(); !fs::is_directory(folder, error))
    return fail(ErrorKind::kUnwritable, target.string(),
                "there is no folder '{}' for '{}'; make it, or name another FILE", folder.string(),
                target.string());
  constexpr std::string_view kSuffix = ".part-";
  remove_left_behind(target, kSuffix);
  const fs::path unfinished = fmt::format("{}{}{}", target.string(), kSuffix, ::getpid());
  const auto fault = copy_into(*file_.db, unfinished, target);
  const fs::path& readable = damaged == Damaged::kKept ? target : file_.db->path();
  Expected<void> done;
  if (!fault) done = tl::unexpected<Error>(fault.error());
  if (fault && !fault->empty())
    done = fail(ErrorKind::kUnreadable, readable.string(),
                "'{0}' is damaged ({1}); `sqlite3 {0} .recover` shows what is left of it", readable.string(),
                *fault);
  if (!done && !(fault && damaged == Damaged::kKept)) {
    remove_parts(unfinished);
    return done;
  }
  fs::rename(unfinished, target, error);
  if (!error) return done;
  remove_parts(unfinished);
  return fail(ErrorKind::kUnwritable, target.string(), "'{}' cannot be written: {}", target.string(),
              error.message());
}

}  // namespace sweep::store
