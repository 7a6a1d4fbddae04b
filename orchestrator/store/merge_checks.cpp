// Finds what keeps two databases from being merged, and the columns that they have.
#include <fmt/format.h>

#include <algorithm>

#include "base/expected.h"
#include "orchestrator/store/columns.h"
#include "orchestrator/store/merge_rows.h"
#include "orchestrator/store/record_sql.h"
#include "orchestrator/store/rows.h"

namespace sweep::store {

Names columns_of(Transaction& work, const std::string& schema, const char* table) {
  Names out;
  auto rows = work.rows("SELECT name FROM pragma_table_info(?, ?)", table, schema);
  while (rows.next()) out.push_back(rows.get<std::string>(0));
  return out;
}

std::string joined(const Names& names, const std::string& before) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + before + sql_name(name);
  return out;
}

Names copied(Transaction& work, const std::string& from, const char* table,
             std::initializer_list<std::string_view> without) {
  Names out = columns_of(work, from, table);
  std::erase_if(out,
                [&](const std::string& name) { return std::ranges::find(without, name) != without.end(); });
  return out;
}

namespace {

void refuse_if(Transaction& work, const std::string& sql, std::string_view sentence, const std::string& shown,
               ErrorKind kind = ErrorKind::kFailed) {
  const auto found = work.one<std::string>(sql);
  if (found) work.refuse(Error{fmt::format(fmt::runtime(sentence), shown, *found), kind, *found});
}

void refuse_unknown_columns(Transaction& work, const std::string& from, const std::string& shown) {
  for (const char* table : {"sweep", "trial", "plan_entry", "allocation", "environment", "attempt",
                            "rank_record", "step_sample", "result"}) {
    const Names here = columns_of(work, "main", table);
    for (const auto& name : columns_of(work, from, table))
      if (std::ranges::find(here, name) == here.end())
        work.refuse(
            Error{fmt::format("'{0}' has a column '{1}' in its table '{2}' that this sweep does not know: "
                              "another version of sweep wrote it. Merge with that one, or bring its "
                              "results here by `sweep export csv --db {0}` with that one and `sweep "
                              "import` with this one",
                              shown, name, table),
                  ErrorKind::kUnknownName, name});
  }
}

void refuse_imported_and_run(Transaction& work, const std::string& from, const std::string& shown) {
  auto rows = work.rows(fmt::format(
      "SELECT s.name, s.options_json, f.options_json FROM {}.sweep f JOIN main.sweep s ON s.name = f.name",
      from));
  while (rows.next()) {
    SweepOptions here, there;
    read_value(rows, 1, here), read_value(rows, 2, there);
    if (here.imported != there.imported)
      rows.refuse(Error{fmt::format(
          "sweep '{1}' was imported in one of the databases and run in the other ('{0}'); import it again "
          "under another name (`sweep import --sweep NAME`)",
          shown, rows.text(0))});
  }
}

}  // namespace

void check_mergeable(Transaction& work, const std::string& from, const std::string& shown) {
  refuse_unknown_columns(work, from, shown);
  refuse_imported_and_run(work, from, shown);
  refuse_if(
      work,
      fmt::format(R"(
                SELECT f.id FROM {0}.allocation f
                JOIN main.allocation a ON a.id = f.id
                JOIN {0}.sweep fs ON fs.id = f.sweep
                JOIN main.sweep s ON s.id = a.sweep
                WHERE a.created_unix_ns <> f.created_unix_ns OR s.name <> fs.name LIMIT 1)",
                  from),
      "allocation '{1}' of '{0}' differs from the one with the same id here; the file was altered by hand, "
      "or two allocations drew the same id",
      shown);
  // Versions differ in the dimensions that they leave out: both texts are compared with all of them.
  std::string differs = fmt::format(
      "(t.spec <> f.spec AND NOT (json_valid(t.spec) AND json_valid(f.spec) AND "
      "json_patch('{0}', t.spec) = json_patch('{0}', f.spec)))",
      usual_dimensions());
  for (const auto& name : copied(work, from, "trial", {"key", "id", "spec"}))
    differs += fmt::format(" OR t.{0} IS NOT f.{0}", sql_name(name));
  refuse_if(
      work,
      fmt::format("SELECT f.id FROM {}.trial f JOIN main.trial t ON t.id = f.id WHERE {} LIMIT 1", from,
                  differs),
      "trial '{1}' of '{0}' is another configuration than the trial with the same id here; the file was "
      "altered by hand",
      shown, ErrorKind::kConflict);
}

}  // namespace sweep::store
