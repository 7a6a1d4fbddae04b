#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "orchestrator/export/results.h"
#include "orchestrator/export/text.h"
#include "schema/codec.h"
#include "schema/columns.h"
#include "schema/labels.h"
#include "schema/values.h"

namespace sweep::exports {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string object_of(const ResultRow& row) {
  Json out = Json::object();
  for (const Column& c : columns()) {
    const std::string key(c.key);
    if (c.key == "labels") {
      out[key] = row.trial.labels.empty() ? Json(nullptr) : Json(label_members(row.trial.labels));
    } else {
      out[key] = value_json<Json>(c.get(row), c.type == "flag");
    }
    if (c.key == "model") {
      const bool known = row.trial.spec != ModelSpec{};
      out["model_dimensions"] = known ? Json(to_json(row.trial.spec)) : Json(nullptr);
    }
  }
  return dumped(out);
}

Expected<void> put(std::ostream& out, std::string_view text) {
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  return out ? Expected<void>{} : fail(std::string(kWriteFailed));
}

// Writes what `next` gives, an object as text each, between the brackets of an array.
template <class Next>
Expected<void> write_array(std::ostream& out, Next&& next) {
  bool first = true;
  if (auto done = put(out, "["); !done) return done;
  while (const std::optional<std::string> object = next()) {
    if (auto done = put(out, first ? "\n" : ",\n"); !done) return done;
    if (auto done = put(out, *object); !done) return done;
    first = false;
  }
  if (auto done = put(out, first ? "]\n" : "\n]\n"); !done) return done;
  return out.flush() ? Expected<void>{} : fail(std::string(kWriteFailed));
}

}  // namespace

Expected<void> write_json(std::ostream& out, const RowSource& next) {
  return write_array(out, [&]() -> std::optional<std::string> {
    const ResultRow* row = next();
    return row ? std::optional(object_of(*row)) : std::nullopt;
  });
}

Expected<void> write_json_lines(std::ostream& out, const RowSource& next) {
  while (const ResultRow* row = next()) {
    if (auto done = put(out, object_of(*row)); !done) return done;
    if (auto done = put(out, "\n"); !done) return done;
  }
  return out.flush() ? Expected<void>{} : fail(std::string(kWriteFailed));
}

Expected<void> write_json(std::ostream& out, const Table& table) {
  std::set<std::string_view> names;
  for (const std::string& name : table.columns)
    if (!names.insert(name).second)
      return fail(
          ErrorKind::kConflict, name,
          fmt::format("two columns are named '{}', and a JSON object has one; name the other one by AS",
                      name));
  return write_array(out, [&, at = std::size_t{0}]() mutable -> std::optional<std::string> {
    if (at == table.rows.size()) return std::nullopt;
    const auto& row = table.rows[at++];
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size() && c < table.columns.size(); ++c)
      object[table.columns[c]] = value_json<Json>(row[c]);
    return dumped(object);
  });
}

}  // namespace sweep::exports
