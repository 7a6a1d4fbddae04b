#include "orchestrator/export/wandb_online.h"

#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/export/wandb_wire.h"
#include "schema/codec.h"

namespace sweep::exports {
namespace {

constexpr std::size_t kLargestPart = 4u << 20;  // bytes of history in one request; W&B takes about 10 MiB

constexpr const char* kUpsert =
    "mutation UpsertBucket($name:String,$project:String,$entity:String,$groupName:String,$displayName:String,"
    "$notes:String,$config:JSONString,$jobType:String,$tags:[String!]){upsertBucket(input:{name:$name,"
    "modelName:$project,entityName:$entity,groupName:$groupName,displayName:$displayName,notes:$notes,"
    "config:$config,jobType:$jobType,tags:$tags}){bucket{id name displayName project{name entity{name}} "
    "historyLineCount}inserted}}";
constexpr const char* kSummary =
    "mutation UpsertBucket($id:String,$summaryMetrics:JSONString){upsertBucket(input:{id:$id,"
    "summaryMetrics:$summaryMetrics}){bucket{id}inserted}}";

bool is_final_refusal(long status) {
  constexpr long kNever[] = {400, 401, 403, 404, 409, 410, 413, 422, 501};
  return status < 400 || std::ranges::find(kNever, status) != std::end(kNever);
}

bool graphql_again(long status) {
  return status == 409 || !is_final_refusal(status);
}
bool stream_again(long status) {
  return !is_final_refusal(status);
}

DeliveryError wandb_trouble(const Reply& reply, const std::string& what) {
  const bool permission = reply.status == 401 || reply.status == 403;
  const bool elsewhere = reply.status >= 300 && reply.status < 400;
  const std::string hint = permission  ? "; is the key right for this server and project?"
                           : elsewhere ? "; the server redirects: name the address it sends to with --uri"
                                       : "";
  return {permission || elsewhere ? DeliveryError::kAll : DeliveryError::kThisRun,
          fmt::format("{}: {}{}", what, words_of(reply), hint)};
}

nlohmann::json value_in(const nlohmann::json& object, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  return object.contains(at) ? object[at] : nlohmann::json();
}

std::string text_in(const nlohmann::json& object, const char* pointer) {
  const auto found = value_in(object, pointer);
  return found.is_string() ? found.get<std::string>() : "";
}

std::string wrapped_config(const TrackerRun& run) {
  WandbItems items;
  for (const auto& [key, json] : wandb_config(run)) items.emplace_back(key, "{\"value\":" + json + "}");
  items.emplace_back("_wandb", R"({"value":{"t":{},"m":[]}})");
  return wandb_object(items);
}

Json file_part(std::size_t offset, Json lines) {
  return {{"offset", offset}, {"content", std::move(lines)}};
}

}  // namespace

std::string WandbOnline::place() const {
  return fmt::format("wandb {} {}/{}", target_.base, target_.entity.empty() ? "(default)" : target_.entity,
                     target_.project);
}

std::string WandbOnline::digest(const TrackerRun& run) const {
  return name_hash(run.name + run.question + wrapped_config(run) + wandb_object(wandb_summary(run)));
}

Delivered<nlohmann::json> WandbOnline::graphql(const std::string& name, const std::string& query,
                                               const Json& variables) {
  const Json body = {{"operationName", name}, {"query", query}, {"variables", variables}};
  SWEEP_GET(const auto reply, client_.send({"POST", target_.base + "/graphql", body.dump()}, graphql_again));
  if (reply.status != 200) return tl::unexpected(wandb_trouble(reply, target_.base + "/graphql"));
  auto parsed = parse_json(reply.body);
  if (!parsed || !parsed->is_object())
    return tl::unexpected(DeliveryError{
        DeliveryError::kAll,
        fmt::format("{}/graphql: this is not a W&B server: {}", target_.base, words_of(reply))});
  if (parsed->contains("errors") || !parsed->contains("data"))
    return refused(fmt::format("{}/graphql: {}", target_.base, words_of(reply)));
  return std::move((*parsed)["data"]);
}

Delivered<WandbOnline::Bucket> WandbOnline::upsert(const TrackerRun& run) {
  Json variables = {
      {"name", run.id},           {"project", target_.project}, {"entity", nullptr},
      {"groupName", run.sweep},   {"displayName", run.name},    {"notes", run.question},
      {"jobType", kWandbJobType}, {"tags", wandb_tags(run)},    {"config", wrapped_config(run)}};
  if (!target_.entity.empty()) variables["entity"] = target_.entity;
  SWEEP_GET(const auto data, graphql("UpsertBucket", kUpsert, variables));
  Bucket out;
  out.storage_id = text_in(data, "/upsertBucket/bucket/id");
  out.name = text_in(data, "/upsertBucket/bucket/name");
  out.project = text_in(data, "/upsertBucket/bucket/project/name");
  out.entity = text_in(data, "/upsertBucket/bucket/project/entity/name");
  out.inserted = value_in(data, "/upsertBucket/inserted") != nlohmann::json(false);
  const auto lines = value_in(data, "/upsertBucket/bucket/historyLineCount");
  if (lines.is_number_integer()) out.lines = lines.get<i64>();
  if (out.name.empty() || out.project.empty() || out.entity.empty())
    return refused(
        fmt::format("{}/graphql answered without the run's name, project or entity", target_.base));
  return out;
}

Delivered<void> WandbOnline::update_summary(const TrackerRun& run, const Bucket& bucket) {
  const Json variables = {{"id", bucket.storage_id}, {"summaryMetrics", wandb_object(wandb_summary(run))}};
  const auto data = graphql("UpsertBucket", kSummary, variables);
  if (!data) return tl::unexpected(data.error());
  return {};
}

Delivered<void> WandbOnline::post_part(const Bucket& bucket, const Json& part) {
  const std::string url =
      fmt::format("{}/files/{}/{}/{}/file_stream", target_.base, escaped_for_url(bucket.entity),
                  escaped_for_url(bucket.project), escaped_for_url(bucket.name));
  SWEEP_GET(const auto reply, client_.send({"POST", url, part.dump()}, stream_again));
  if (reply.status != 200) return tl::unexpected(wandb_trouble(reply, url));
  const auto body = parse_json(reply.body);
  if (body && body->is_object() && body->contains("error"))
    return refused(fmt::format("{}: {}", url, words_of(reply)));
  return {};
}

Delivered<void> WandbOnline::stream(const TrackerRun& run, const Bucket& bucket) {
  const auto total = static_cast<i64>(run.history.size());
  Json lines = Json::array();
  std::size_t bytes = 0, offset = 0;
  if (bucket.lines < total) {  // else they are all there, by an export that was cut off
    for (const HistoryPoint& point : run.history) {
      std::string line = wandb_object(wandb_history(point));
      if (bytes > 0 && bytes + line.size() > kLargestPart) {
        const std::size_t sent = lines.size();
        const Json part = {{"files", {{"wandb-history.jsonl", file_part(offset, std::move(lines))}}}};
        if (auto posted = post_part(bucket, part); !posted) return posted;
        offset += sent, bytes = 0, lines = Json::array();
      }
      bytes += line.size();
      lines.push_back(std::move(line));
    }
  }
  Json files = Json::object();
  if (!lines.empty()) files["wandb-history.jsonl"] = file_part(offset, std::move(lines));
  files["wandb-summary.json"] = file_part(0, Json::array({wandb_object(wandb_summary(run))}));
  return post_part(bucket, {{"files", files}, {"complete", true}, {"exitcode", wandb_exit_code(run)}});
}

Delivered<std::string> WandbOnline::deliver(const TrackerRun& run, const std::optional<Receipt>& before) {
  SWEEP_GET(const auto bucket, upsert(run));
  const std::string remote = fmt::format("{}/{}/{}", bucket.entity, bucket.project, bucket.name);
  if (bucket.lines > static_cast<i64>(run.history.size()))
    return refused(fmt::format(
        "run {} holds {} lines of history and the trial has {}: someone else logs to it, it is left alone",
        remote, bucket.lines, run.history.size()));
  const bool only_summary = before && !bucket.inserted;
  auto sent = only_summary ? update_summary(run, bucket) : stream(run, bucket);
  if (!sent) return tl::unexpected(sent.error());
  return remote;
}

}  // namespace sweep::exports
