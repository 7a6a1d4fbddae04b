// Saved query: SQL with a name: those the program brings, and the user's own files NAME.sql in one folder,
// which come first. It refuses names that are no plain words, so that a name is never a path.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/expected.h"

namespace sweep::answers {

struct SavedQuery {
  std::string name, sentence, sql;
  std::string place;  // the file; "built in" for those of the program
};

// $XDG_CONFIG_HOME/sweep/queries, else ~/.config/sweep/queries; empty: neither is set.
std::filesystem::path query_folder();

// A name of letters, digits, - and _ (is_plain_name) is never a whole SELECT.
std::vector<SavedQuery> saved_queries(const std::filesystem::path& folder);  // sorted by name
Expected<SavedQuery> find_query(const std::filesystem::path& folder, const std::string& name);

}  // namespace sweep::answers
