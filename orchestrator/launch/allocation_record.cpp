#include "orchestrator/launch/allocation_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/spool.h"

namespace sweep::launch {
namespace {

std::filesystem::path record_path(const std::filesystem::path& spool) {
  return spool / "allocation.json";
}

}  // namespace

Expected<void> keep_record(const AllocationRequest& request, std::string_view launcher, nlohmann::json own) {
  own.update({{"launcher", launcher},
              {"nodes", request.nodes},
              {"slots", request.slots},
              {"gpus", request.gpus},
              {"ranks_per_node", request.ranks_per_node},
              {"hardware", request.hardware},
              {"seconds", request.seconds}});
  return files::write_atomically(record_path(request.spool), dump(own) + "\n");
}

bool has_record(const std::filesystem::path& spool) {
  std::error_code ec;
  return std::filesystem::exists(record_path(spool), ec);
}

void drop_record(const std::filesystem::path& spool) {
  std::error_code ec;
  std::filesystem::remove(record_path(spool), ec);
}

Expected<std::optional<nlohmann::json>> read_record(const std::filesystem::path& spool,
                                                    std::string_view launcher) {
  const auto path = record_path(spool);
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return std::optional<nlohmann::json>();
  SWEEP_GET(const auto text, files::read(path));
  auto record = parse_json(text);
  if (!record) return fail(fmt::format("{}: {}", path.string(), record.error().message));
  if (!record->is_object()) return fail(fmt::format("{}: it is no JSON object", path.string()));
  if (text_of(*record, "launcher") != launcher) return std::optional<nlohmann::json>();
  return std::optional(std::move(*record));
}

void restore(AllocationRequest& request, const nlohmann::json& record) {
  const auto at_least_one = [&](const char* name) { return std::max<i64>(integer_of(record, name), 1); };
  request.nodes = at_least_one("nodes");
  request.slots = at_least_one("slots");
  request.gpus = std::max<i64>(integer_of(record, "gpus"), 0);
  request.ranks_per_node = at_least_one("ranks_per_node");
  request.hardware = text_of(record, "hardware");
  if (const double seconds = number_of(record, "seconds"); seconds > 0) request.seconds = seconds;
}

}  // namespace sweep::launch
