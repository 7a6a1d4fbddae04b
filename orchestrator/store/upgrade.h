// Bringing a database file to this program's version: identity check, backup, migrations, generated columns.
#pragma once
#include <span>
#include <string_view>

#include "orchestrator/store/db.h"

namespace sweep::store {

// The mark in the file's header: "SWP1".
inline constexpr i64 kApplicationId = 0x53575031;
inline constexpr i64 kUnreleasedId = 0x53574550;

struct Migration {
  int version;  // the file's version after it
  std::string_view sql;
};
// Embedded from schema/sqlite, numbered 1, 2, ... without gaps.
std::span<const Migration> migrations();

std::string not_ours(const std::filesystem::path&);  // the sentence that refuses a stranger's database
// Refuses what is no sweep database, or a newer one. Returns the file's version; 0: a database without a
// table, which only a new one may be.
Expected<i64> check_identity(Db&, std::span<const Migration>);
// An older file is copied to `<file>.v<N>.bak` first; all steps run in one transaction. A new file starts
// from nothing.
Expected<void> bring_up_to_date(Db&, std::span<const Migration>);
// The same without the backup, for a database that is a copy itself.
Expected<void> upgrade_copy(Db&, std::span<const Migration>);
// Every page of one database into another's schema (main, or an attached one).
Expected<void> copy_pages(Db& from, Db& to, const char* to_schema);
// SQLite's report of damaged pages of a database, or of an attached one; empty: there are none.
Expected<std::string> damage_of(Db&, std::string_view schema = "main");

}  // namespace sweep::store
