#include <nlohmann/json.hpp>
#include <ostream>

#include "base/formula_guard.h"
#include "orchestrator/export/results.h"
#include "orchestrator/export/text.h"
#include "schema/codec.h"
#include "schema/columns.h"

namespace sweep::exports {
namespace {

void append_text(std::string& out, std::string_view raw, const CsvOptions& options) {
  const std::string text = options.raw_text ? valid_utf8(raw) : guarded(valid_utf8(raw));
  const bool quote = (!options.raw_text && needs_guard(text)) ||
                     text.find_first_of(",\"\r\n") != std::string::npos ||
                     (!text.empty() && (text.front() == ' ' || text.back() == ' '));
  if (!quote) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void append_value(std::string& out, const Value& value, bool flag, const CsvOptions& options) {
  if (const auto* v = std::get_if<std::string>(&value)) return append_text(out, *v, options);
  if (const auto* v = std::get_if<i64>(&value)) {
    out += flag ? (*v != 0 ? "true" : "false") : std::to_string(*v);
  } else if (const auto* v = std::get_if<double>(&value)) {
    out += shortest(*v);  // empty when not finite
  }
}

// A model's dimensions as JSON; empty: none are known. Most rows have the model of the row before.
class Dimensions {
 public:
  const std::string& of(const ModelSpec& spec) {
    if (spec == last_) return text_;
    last_ = spec;
    text_ = spec == ModelSpec{} ? "" : dump(to_json(spec));
    return text_;
  }

 private:
  ModelSpec last_;
  std::string text_;
};

Expected<void> put(std::ostream& out, std::string& line, const CsvOptions& options) {
  line += options.line_end;
  out.write(line.data(), static_cast<std::streamsize>(line.size()));
  line.clear();
  return out ? Expected<void>{} : fail(std::string(kWriteFailed));
}

Expected<void> flushed(std::ostream& out) {
  return out.flush() ? Expected<void>{} : fail(std::string(kWriteFailed));
}

}  // namespace

RowSource rows_of(std::span<const ResultRow> rows) {
  return [rows, at = std::size_t{0}]() mutable { return at < rows.size() ? &rows[at++] : nullptr; };
}

Expected<void> write_csv(std::ostream& out, const RowSource& next, const CsvOptions& options) {
  std::string line;
  for (const Column& c : columns()) {
    if (!line.empty()) line += ',';
    line += c.key;
    if (c.key == "model") line += ",model_dimensions";
  }
  if (auto done = put(out, line, options); !done) return done;
  Dimensions dimensions;
  while (const ResultRow* row = next()) {
    bool first = true;
    for (const Column& c : columns()) {
      if (!first) line += ',';
      first = false;
      append_value(line, c.get(*row), c.type == "flag", options);
      if (c.key == "model") append_text(line += ',', dimensions.of(row->trial.spec), options);
    }
    if (auto done = put(out, line, options); !done) return done;
  }
  return flushed(out);
}

Expected<void> write_csv(std::ostream& out, const Table& table, const CsvOptions& options) {
  std::string line;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (c > 0) line += ',';
    append_text(line, table.columns[c], options);
  }
  if (auto done = put(out, line, options); !done) return done;
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += ',';
      append_value(line, row[c], false, options);
    }
    if (auto done = put(out, line, options); !done) return done;
  }
  return flushed(out);
}

}  // namespace sweep::exports
