#include "orchestrator/export/mlflow.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/expected.h"
#include "orchestrator/export/mlflow_wire.h"
#include "schema/codec.h"
#include "schema/rehearsal.h"

namespace sweep::exports {
namespace {

using Answer = nlohmann::json;

constexpr const char* kApi = "/api/2.0/mlflow/";
constexpr const char* kArtifacts = "/api/2.0/mlflow-artifacts/artifacts/";
constexpr const char* kProxied = "mlflow-artifacts:/";
constexpr int kSearchPage = 1000;

bool mlflow_again(long status) {
  constexpr long kStatuses[] = {408, 429, 500, 502, 503, 504};
  return std::ranges::find(kStatuses, status) != std::end(kStatuses);
}

DeliveryError mlflow_trouble(const Reply& reply, const std::string& url) {
  const bool everywhere = reply.status == 401 || reply.status == 403 || reply.status < 400;
  const char* hint = reply.status == 401   ? "; docs/exports.md says where keys come from"
                     : reply.status == 403 ? "; no permission, or a server that wants --allowed-hosts"
                     : reply.status < 400  ? "; the server redirects: name the address it sends to with --uri"
                                           : "";
  return {everywhere ? DeliveryError::kAll : DeliveryError::kThisRun,
          fmt::format("{}: {}{}", url, words_of(reply), hint)};
}

std::string text_at(const Answer& object, const char* pointer) {
  const Answer::json_pointer at(pointer);
  return object.contains(at) && object[at].is_string() ? object[at].get<std::string>() : "";
}

std::string tag_of(const Answer& run, const std::string& key) {
  const Answer::json_pointer at("/data/tags");
  if (!run.contains(at) || !run[at].is_array()) return "";
  for (const Answer& tag : run[at])
    if (text_at(tag, "/key") == key) return text_at(tag, "/value");
  return "";
}

Json tag(const char* key, const std::string& value) {
  return {{"key", key}, {"value", value}};
}

// The slice of an array, as an array.
Json slice(const std::vector<Json>& all, std::size_t from, std::size_t to) {
  return Json(std::vector<Json>(all.begin() + static_cast<std::ptrdiff_t>(from),
                                all.begin() + static_cast<std::ptrdiff_t>(std::min(to, all.size()))));
}

}  // namespace

std::string Mlflow::place() const {
  return fmt::format("mlflow {} {}", target_.base, target_.experiment);
}

std::string Mlflow::digest(const TrackerRun& run) const {
  std::string all = Json(mlflow_params(run)).dump() + mlflow_tags(run).dump() + run.name;
  for (const Json& metric : mlflow_metrics(run, 0, true)) all += metric.dump();
  return name_hash(all);
}

std::string Mlflow::digest(const TrackerSweep& sweep) const {
  return name_hash(sweep.name + '\n' + sweep.question + '\n' + sweep.grid_text + '\n' + sweep.results_csv);
}

Delivered<Answer> Mlflow::call(const std::string& method, const std::string& path, const Json& body,
                               const RetryingClient::Look& look) {
  const std::string url = target_.base + kApi + path;
  SWEEP_GET(const auto reply,
            client_.send({method, url, method == "GET" ? "" : body.dump()}, mlflow_again, look));
  if (reply.status != 200) return tl::unexpected(mlflow_trouble(reply, url));
  auto parsed = parse_json(reply.body);
  if (!parsed || !parsed->is_object())
    return tl::unexpected(DeliveryError{
        DeliveryError::kAll, fmt::format("{}: this is not an MLflow server: {}", url, words_of(reply))});
  return std::move(*parsed);
}

Delivered<std::string> Mlflow::experiment_id() {
  const std::string url =
      target_.base + kApi + "experiments/get-by-name?experiment_name=" + escaped_for_url(target_.experiment);
  for (int tried = 0;; ++tried) {
    SWEEP_GET(const auto found, client_.send({"GET", url, ""}, mlflow_again));
    const auto body = parse_json(found.body);
    if (found.status == 200 && body) {
      if (text_at(*body, "/experiment/lifecycle_stage") == "deleted")
        return tl::unexpected(DeliveryError{
            DeliveryError::kAll,
            fmt::format("the MLflow experiment '{}' is deleted there; restore it, or name another "
                        "with --experiment",
                        target_.experiment)});
      const std::string id = text_at(*body, "/experiment/experiment_id");
      if (!id.empty()) return id;
    }
    if (found.status != 404 || !body || text_at(*body, "/error_code") != "RESOURCE_DOES_NOT_EXIST" ||
        tried > 0)
      return tl::unexpected(DeliveryError{DeliveryError::kAll, mlflow_trouble(found, url).sentence});
    // A conflict means that someone else was faster, or that an answer was lost: it is there either way.
    const auto made = client_.send(
        {"POST", target_.base + kApi + "experiments/create", Json{{"name", target_.experiment}}.dump()},
        mlflow_again);
    if (!made) return tl::unexpected(made.error());
    const auto answer = parse_json(made->body);
    const bool raced = answer && text_at(*answer, "/error_code") == "RESOURCE_ALREADY_EXISTS";
    if (made->status != 200 && !raced)
      return tl::unexpected(DeliveryError{
          DeliveryError::kAll, mlflow_trouble(*made, target_.base + kApi + "experiments/create").sentence});
  }
}

Delivered<std::vector<Answer>> Mlflow::search(const std::string& filter) {
  std::vector<Answer> out;
  for (std::string page;;) {
    Json body = {{"experiment_ids", {experiment_}},
                 {"filter", filter},
                 {"max_results", kSearchPage},
                 {"order_by", {"attributes.start_time ASC"}}};
    if (!page.empty()) body["page_token"] = page;
    SWEEP_GET(auto found, call("POST", "runs/search", body));
    for (Answer& run : found["runs"]) out.push_back(std::move(run));
    page = text_at(found, "/next_page_token");
    if (page.empty()) return out;
  }
}

// A run of ours in the form in which runs/create answers.
Delivered<std::optional<Reply>> Mlflow::look_for(const std::string& key) {
  SWEEP_GET(const auto found, search(fmt::format("tags.`{}` = '{}'", kMlflowKeyTag, key)));
  if (found.empty()) return std::optional<Reply>();
  return std::optional<Reply>(Reply{200, Answer{{"run", found.front()}}.dump(), {}});
}

Delivered<Mlflow::Remote> Mlflow::find_or_create(const std::string& key, const Json& body) {
  const auto made = call("POST", "runs/create", body, [&] { return look_for(key); });
  if (!made) return tl::unexpected(made.error());
  Remote out{text_at(*made, "/run/info/run_id"), text_at(*made, "/run/info/artifact_uri")};
  if (out.id.empty()) return refused(fmt::format("{}: runs/create answered without a run_id", target_.base));
  return out;
}

Delivered<void> Mlflow::learn_children() {
  SWEEP_GET(const auto found, search(fmt::format("tags.`mlflow.parentRunId` = '{}'", parent_.id)));
  for (const Answer& run : found)
    if (const std::string key = tag_of(run, kMlflowKeyTag); !key.empty())
      children_.try_emplace(key, Remote{text_at(run, "/info/run_id"), text_at(run, "/info/artifact_uri")});
  return {};
}

Delivered<void> Mlflow::open(const TrackerSweep& sweep, const std::optional<Receipt>&) {
  SWEEP_GET(experiment_, experiment_id());
  SWEEP_GET(const auto known, search(fmt::format("tags.`{}` = '{}'", kMlflowKeyTag, sweep.id)));
  if (!known.empty()) {
    parent_ = {text_at(known.front(), "/info/run_id"), text_at(known.front(), "/info/artifact_uri")};
    return learn_children();
  }
  Json tags = {tag(kMlflowKeyTag, sweep.id), tag("mlflow.user", target_.user),
               tag("mlflow.source.name", "sweep"), tag("mlflow.source.type", "LOCAL")};
  if (is_rehearsal(sweep.name)) tags.push_back(tag("sweep.rehearsed", "true"));
  if (!sweep.question.empty()) tags.push_back(tag("mlflow.note.content", cut_to(sweep.question, 8000)));
  auto made = find_or_create(sweep.id, {{"experiment_id", experiment_},
                                        {"run_name", cut_to(sweep.name, 250)},
                                        {"start_time", unix_ms(sweep.created_unix_s)},
                                        {"tags", tags}});
  if (!made)
    return tl::unexpected(DeliveryError{
        made.error().kind == DeliveryError::kInterrupted ? DeliveryError::kInterrupted : DeliveryError::kAll,
        made.error().sentence});
  parent_ = std::move(*made);
  return {};
}

// was_sent: in full, by an earlier export.
Delivered<void> Mlflow::log(const TrackerRun& run, const std::string& id, i64 revision, bool was_sent) {
  const std::vector<Json> params = mlflow_params(run);
  Json first = {{"run_id", id}, {"tags", mlflow_tags(run)}};
  if (!was_sent) first["params"] = slice(params, 0, kMlflowParams);
  SWEEP_TRY(call("POST", "runs/log-batch", first));
  const auto metrics = mlflow_metrics(run, revision, !was_sent);  // the history never changes
  for (std::size_t at = 0; at < metrics.size(); at += kMlflowMetrics) {
    const Json batch = {{"run_id", id}, {"metrics", slice(metrics, at, at + kMlflowMetrics)}};
    SWEEP_TRY(call("POST", "runs/log-batch", batch));
  }
  // A run that was delivered before gets its parameters again: it lacks the axes that came since. MLflow takes equal ones
  // and refuses changed ones, so they are last.
  for (std::size_t at = was_sent ? 0 : kMlflowParams; at < params.size(); at += kMlflowParams) {
    const Json batch = {{"run_id", id}, {"params", slice(params, at, at + kMlflowParams)}};
    SWEEP_TRY(call("POST", "runs/log-batch", batch));
  }
  return {};
}

Delivered<Answer> Mlflow::kept(const std::string& id) {
  SWEEP_GET(const auto got, call("GET", "runs/get?run_id=" + escaped_for_url(id), {}));
  const Answer::json_pointer at("/run/data");
  return got.contains(at) ? got[at] : Answer::object();
}

Delivered<void> Mlflow::check(const TrackerRun& run, const std::string& id) {
  SWEEP_GET(const auto data, kept(id));
  const std::string difference = mlflow_difference(run, data);
  if (difference.empty()) return {};
  return refused(fmt::format("run {} of trial {}: the server said yes and kept something else: {}", id,
                             run.trial, difference));
}

Delivered<void> Mlflow::put_artifact(const Remote& to, const std::string& name, const std::string& bytes) {
  if (!to.artifacts.starts_with(kProxied)) {
    if (!std::exchange(said_no_artifacts_, true))
      note_(fmt::format("artifacts are left out: the server keeps them at {}, not behind its own address",
                        to.artifacts));
    return {};
  }
  std::string url = target_.base + kArtifacts + to.artifacts.substr(std::string_view(kProxied).size());
  url += '/' + name;
  SWEEP_GET(const auto reply, client_.send({"PUT", url, bytes, "application/octet-stream"}, mlflow_again));
  if (reply.status != 200) return tl::unexpected(mlflow_trouble(reply, url));
  return {};
}

Delivered<void> Mlflow::set_status(const std::string& id, const std::string& status, double ended_unix_s) {
  const auto done =
      call("POST", "runs/update", {{"run_id", id}, {"status", status}, {"end_time", unix_ms(ended_unix_s)}});
  if (!done) return tl::unexpected(done.error());
  const std::string kept = text_at(*done, "/run_info/status");
  if (kept == status) return {};
  return refused(fmt::format("run {}: its status was set to {} and is '{}'", id, status, kept));
}

Delivered<std::string> Mlflow::deliver(const TrackerRun& run, const std::optional<Receipt>& before) {
  Remote remote;
  i64 revision = 0;
  bool was_sent = before.has_value();
  if (const auto known = children_.find(run.id); known != children_.end()) {
    remote = known->second;
    SWEEP_GET(const auto data, kept(remote.id));
    revision = mlflow_revision(run, data);
  } else {
    auto made =
        find_or_create(run.id, {{"experiment_id", experiment_},
                                {"run_name", run.name},
                                {"start_time", unix_ms(run.begun_unix_s)},
                                {"tags",
                                 {tag(kMlflowKeyTag, run.id), tag("mlflow.parentRunId", parent_.id),
                                  tag("mlflow.user", target_.user), tag("mlflow.source.name", "sweep"),
                                  tag("mlflow.source.type", "LOCAL")}}});
    if (!made) return tl::unexpected(made.error());
    remote = std::move(*made);
    was_sent = false;  // an earlier delivery is no longer there
  }
  delivered_[run.id] = remote.id;
  SWEEP_TRY(log(run, remote.id, revision, was_sent));
  SWEEP_TRY(put_artifact(remote, "result.json", run.record));
  SWEEP_TRY(set_status(remote.id, mlflow_status(run.outcome), run.ended_unix_s));
  SWEEP_TRY(check(run, remote.id));
  return remote.id;
}

// A runs/create that was carried out after we had stopped waiting for it leaves an empty run behind.
Delivered<void> Mlflow::remove_doubles() {
  SWEEP_GET(const auto found, search(fmt::format("tags.`mlflow.parentRunId` = '{}'", parent_.id)));
  for (const Answer& run : found) {
    const std::string id = text_at(run, "/info/run_id");
    const auto ours = delivered_.find(tag_of(run, kMlflowKeyTag));
    if (ours == delivered_.end() || ours->second == id) continue;
    SWEEP_TRY(call("POST", "runs/delete", {{"run_id", id}}));
  }
  return {};
}

Delivered<std::string> Mlflow::close(const TrackerSweep& sweep) {
  SWEEP_TRY(remove_doubles());
  SWEEP_TRY(put_artifact(parent_, "grid.yaml", sweep.grid_text));
  SWEEP_TRY(put_artifact(parent_, "results.csv", sweep.results_csv));
  SWEEP_TRY(set_status(parent_.id, "FINISHED", sweep.ended_unix_s));
  return parent_.id;
}

}  // namespace sweep::exports
