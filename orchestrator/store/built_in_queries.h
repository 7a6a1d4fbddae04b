// The queries that `sweep query NAME` knows without a file of the user's.
#pragma once
#include <span>
#include <string_view>

namespace sweep::store {

struct BuiltInQuery {
  std::string_view name, sentence, sql;
};
std::span<const BuiltInQuery> built_in_queries();

}  // namespace sweep::store
