// The columns that two databases of a merge have, as lists for its statements.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/store/db.h"

namespace sweep::store {

using Names = std::vector<std::string>;

Names columns_of(Transaction&, const std::string& schema, const char* table);
// "a, b, c", each with `before` in front.
std::string joined(const Names&, const std::string& before);
// The columns of the other file's table, without those that are numbered or settled anew here.
Names copied(Transaction&, const std::string& from, const char* table,
             std::initializer_list<std::string_view> without);

}  // namespace sweep::store
