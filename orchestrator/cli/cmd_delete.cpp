// sweep backup, sweep delete: the database as a file, and what is no longer wanted in it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/driver/holder.h"
#include "orchestrator/driver/spool_root.h"
#include "orchestrator/run/retry_policy.h"

namespace sweep::cli {
namespace {

namespace fs = std::filesystem;

int backup(Io& io, const SweepSelector& where, const std::string& file) {
  if (const auto there = database_is_there(where.db); !there) return refuse(io, there.error());
  auto store = run::open_store(where.db, store::Mode::kReadOnly);
  if (!store) return refuse(io, store.error());
  if (auto done = (*store)->back_up(file); !done) return refuse(io, done.error());
  const auto bytes = fs::file_size(file);
  io.err << fmt::format("{}: {} bytes, every sweep of {}; logs of trials stay in {}.spool\n", file, bytes,
                        where.db, where.db);
  if (io.json) print_document(io, {{"file", file}, {"bytes", bytes}, {"db", where.db}});
  return kAnswered;
}

Expected<void> agreed(Io& io, const std::string& sweep, const std::string& db, bool yes) {
  if (yes) return {};
  const auto what =
      fmt::format("sweep '{}' of {}, its results and its logs will be gone", answers::safe_text(sweep), db);
  if (io.in == nullptr)
    return fail(ErrorKind::kRefused, sweep, what + "; say --yes, and `sweep backup FILE` before");
  if (goes_on(io, what)) return {};
  return fail(ErrorKind::kRefused, sweep, "nothing was deleted");
}

struct RemovedLogs {
  i64 folders = 0;
  std::vector<std::string> notes;  // a sentence for each folder that is still there
};

// Only folders beside this database: the paths are text of a file that may have been moved, or merged.
RemovedLogs remove_logs(const std::string& db, const std::vector<fs::path>& spools) {
  std::error_code ec;
  const auto root = fs::weakly_canonical(driver::spool_root_of(db), ec);
  RemovedLogs out;
  for (const auto& spool : spools) {
    const auto folder = fs::weakly_canonical(spool, ec);
    if (ec || folder.parent_path() != root || !fs::exists(folder, ec)) continue;
    fs::remove_all(folder, ec);
    if (ec)
      out.notes.push_back(fmt::format("{} could not be removed: {}", folder.string(), ec.message()));
    else
      ++out.folders;
  }
  return out;
}

int remove(Io& io, const SweepSelector& where, bool yes) {
  auto opened = open_sweep(where, store::Mode::kReadWrite);
  if (!opened) return refuse(io, opened.error());
  const auto holder = driver::holder_of(*opened->store, opened->sweep.id);
  if (!holder) return refuse(io, holder.error());
  if (*holder)
    return refuse(io, {fmt::format("sweep '{}' is {}; `sweep stop {}` ends the run", opened->sweep.name,
                                   driver::holder_text(**holder), opened->sweep.name),
                       ErrorKind::kBusy, opened->sweep.name});
  if (auto may = agreed(io, opened->sweep.name, where.db, yes); !may) return refuse(io, may.error());
  const auto removed = opened->store->remove_sweep(opened->sweep);
  if (!removed) return refuse(io, removed.error());
  const auto logs = remove_logs(where.db, removed->spools);
  for (const auto& note : logs.notes) io.err << "note: " << note << '\n';
  io.err << fmt::format("deleted sweep '{}': {} trials, {} attempts, {} folders of logs\n",
                        answers::safe_text(opened->sweep.name), removed->trials, removed->attempts,
                        logs.folders);
  if (io.json)
    print_document(io, {{"sweep", opened->sweep.name},
                        {"db", where.db},
                        {"trials", removed->trials},
                        {"attempts", removed->attempts},
                        {"log_folders", logs.folders},
                        {"notes", logs.notes}});
  return kAnswered;
}

}  // namespace

void add_backup(Registry r) {
  auto* c = r.app.add_subcommand("backup", "copy the database into one file, also while a sweep runs");
  auto where = std::make_shared<SweepSelector>();
  auto file = std::make_shared<std::string>();
  c->add_option("FILE", *file, "the copy; it must not exist")->required();
  add_db(*c, *where);
  add_json(*c);
  c->callback([r, where, file] { r.chosen = [r, where, file] { return backup(r.io, *where, *file); }; });
}

void add_delete(Registry r) {
  auto* c = r.app.add_subcommand("delete", "delete a sweep with its results and logs; asks first");
  auto where = std::make_shared<SweepSelector>();
  auto yes = std::make_shared<bool>(false);
  c->add_option("SWEEP", where->sweep, "name of the sweep")->required();
  add_db(*c, *where);
  c->add_flag("--yes", *yes, "do not ask");
  add_json(*c);
  c->callback([r, where, yes] { r.chosen = [r, where, yes] { return remove(r.io, *where, *yes); }; });
}

}  // namespace sweep::cli
