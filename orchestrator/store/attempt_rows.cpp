#include "orchestrator/store/attempt_rows.h"

#include <fmt/format.h>

#include "base/expected.h"
#include "orchestrator/store/record_sql.h"

namespace sweep::store {

std::optional<i64> sweep_of_allocation(Transaction& work, const std::string& id) {
  const auto sweep = work.one<i64>("SELECT sweep FROM allocation WHERE id = ?", id);
  if (!sweep)
    work.refuse(Error{fmt::format("database '{}' knows no allocation '{}'", work.db().path().string(), id),
                      ErrorKind::kNotFound, id});
  return sweep;
}

void write_allocation(Transaction& work, const StoredAllocation& allocation) {
  static const std::string sql =
      insert_statement("INSERT", "allocation", {}, stored_fields<StoredAllocation>());
  run_with_fields(work, sql, allocation);
}

i64 insert_attempt(Transaction& work, const NewAttempt& attempt) {
  work.run(R"(
      INSERT INTO attempt(entry, allocation, state, world, request, ended_unix_ns, posted_unix_ns)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6,
              max(?7, (SELECT COALESCE(max(posted_unix_ns) + 1, 0) FROM attempt WHERE entry = ?1))))",
           attempt.entry, attempt.allocation, attempt.state, attempt.world, attempt.request,
           attempt.ended_unix_ns, attempt.posted_unix_ns);
  return work.last_id();
}

}  // namespace sweep::store
