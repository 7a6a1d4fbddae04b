// StoreFile: an open database as the subjects of a store share it. Private to store/.
#pragma once
#include <memory>
#include <optional>

#include "orchestrator/store/columns.h"
#include "orchestrator/store/db.h"
#include "orchestrator/store/lease.h"
#include "orchestrator/store/store.h"

namespace sweep::store {

// A connection that cannot write, whatever the SQL.
Expected<std::unique_ptr<Db>> open_for_reading(const std::filesystem::path&, int busy_timeout_ms);

// An answer of progress(), valid until the next write.
struct CountedProgress {
  i64 sweep = 0, others = 0, own = 0;  // SQLite's counts of writes by other connections and by this one
  Progress progress;
};

struct StoreFile {
  // Moves what was stored into the file itself, as far as other processes let it.
  ~StoreFile();
  std::unique_ptr<Db> db;
  StoreDependencies dependencies;
  bool network = false;  // on a network filesystem
  Selects selects;
  Leases leases;
  std::optional<CountedProgress> counted{};
  std::unique_ptr<Db> query_db{};  // opened by the first query()
};

}  // namespace sweep::store
