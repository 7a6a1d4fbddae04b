// What one rank of a trial wrote, for `sweep logs`.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "orchestrator/store/store.h"

namespace sweep::answers {

struct LogRequest {
  std::string trial;           // the id, or its beginning
  std::optional<i64> attempt;  // nullopt: the last one
  i64 rank = 0;
};
struct RankLog {
  std::string trial;
  i64 attempt = 0, rank = 0;
  std::filesystem::path file;
  std::string text;
};
// `spools`: the folder with the spools of this database.
Expected<RankLog> rank_log(store::Store&, i64 sweep, const std::filesystem::path& spools, const LogRequest&);
nlohmann::json rank_log_json(const RankLog&);

}  // namespace sweep::answers
