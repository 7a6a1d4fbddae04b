#include "orchestrator/answers/tables/rank_log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "base/files.h"
#include "schema/spool.h"

namespace sweep::answers {

Expected<RankLog> rank_log(store::Store& store, i64 sweep, const std::filesystem::path& spools,
                           const LogRequest& wanted) {
  const auto id = store.find_trial(sweep, wanted.trial);
  if (!id) return tl::unexpected(id.error());
  const auto attempts = store.attempts(sweep, *id);
  if (!attempts) return tl::unexpected(attempts.error());
  const store::AttemptRow* chosen = nullptr;
  for (const auto& row : *attempts)
    if (!wanted.attempt || row.id == *wanted.attempt) chosen = &row;
  if (!chosen)
    return fail(fmt::format("trial {} has no attempt{}; it was never started", *id,
                            wanted.attempt ? fmt::format(" {}", *wanted.attempt) : ""));
  const i64 world = chosen->attempt.trial.world();
  if (wanted.rank < 0 || wanted.rank >= world)
    return fail(fmt::format("--rank {}: the trial has ranks 0 to {}", wanted.rank, world - 1));
  const auto folder = spool::attempt_dir(spools / chosen->allocation, chosen->id);
  RankLog out{*id, chosen->id, wanted.rank, spool::rank_log(folder, wanted.rank), ""};
  auto text = files::read(out.file);
  if (!text)
    return tl::unexpected(retold(
        text.error(),
        fmt::format("{}; logs lie in {} where the run wrote them: imported results have none, and a copy "
                    "of the database needs that folder beside it",
                    text.error().message, spools.string())));
  out.text = std::move(*text);
  return out;
}

nlohmann::json rank_log_json(const RankLog& log) {
  return {{"trial", log.trial},
          {"attempt", log.attempt},
          {"rank", log.rank},
          {"file", log.file.string()},
          {"text", log.text}};
}

}  // namespace sweep::answers
