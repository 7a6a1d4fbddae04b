// StoreFile: an open database as the subjects of a store share it. Private to store/.
#pragma once
#include <memory>
#include <optional>

#include "orchestrator/store/columns.h"
#include "orchestrator/store/db.h"
#include "orchestrator/store/file_at_path.h"
#include "orchestrator/store/lease.h"
#include "orchestrator/store/store.h"

namespace sweep::store {

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
  bool network = false;  // the file is on a network filesystem
  Selects selects;
  Leases leases;
  FileAtPath at_path{};
  std::optional<CountedProgress> counted{};
  std::unique_ptr<Db> query_db{};  // opened by the first query()
  i64 opened_again = 0;            // times that look_again() opened it
};

}  // namespace sweep::store
