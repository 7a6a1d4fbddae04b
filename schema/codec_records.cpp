// JSON of all records of the table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schema/json_fields.h"

namespace sweep {

using fields::JsonType;
using fields::kJsonType;
using fields::Reader;
using fields::value;
using nlohmann::json;

struct JsonRecord {
  struct Field {
    const char* key;
    const JsonType* type;
    void* (*in)(void* record);  // the address of the member
    bool only_given, is_needed;
  };
  std::string_view what;  // the name in errors
  std::span<const Field> fields;
  // The record whose fields it has too, and its address in one; null: none.
  const JsonRecord& (*base)() = nullptr;
  void* (*base_in)(void* record) = nullptr;
};

namespace {

using JsonField = JsonRecord::Field;

template <class Record, class T, T Record::*kMember>
constexpr JsonField json_field(const char* member, const FieldPlace& place) {
  return {place.key ? place.key : member, &kJsonType<T>,
          [](void* record) -> void* { return &(static_cast<Record*>(record)->*kMember); }, place.only_given,
          place.is_needed};
}

template <class Record, class Base>
constexpr JsonRecord record_of(std::span<const JsonField> fields) {
  JsonRecord out{kRecordWords<Record>, fields};
  if constexpr (!std::is_same_v<Base, NoRecord>) {
    out.base = []() -> const JsonRecord& { return json_record(Of<Base>()); };
    out.base_in = [](void* record) -> void* { return static_cast<Base*>(static_cast<Record*>(record)); };
  }
  return out;
}

// Leaves out absent members: a reader takes the default, which is absent.
void write(const JsonRecord& of, void* record, json& out) {
  if (of.base) write(of.base(), of.base_in(record), out);
  for (const JsonField& field : of.fields) {
    const void* member = field.in(record);
    const bool may_lack = field.type->is_optional || field.only_given;
    if (!may_lack || !field.type->has_no_content(member)) out[field.key] = field.type->write(member);
  }
}

void read(const JsonRecord& of, void* record, Reader& in) {
  if (of.base) read(of.base(), of.base_in(record), in);
  for (const JsonField& field : of.fields) in.get(field.key, field.in(record), *field.type, field.is_needed);
}

}  // namespace

#define RECORD_OF(Name, Base, words)        \
  const JsonRecord& json_record(Of<Name>) { \
    using namespace field_places;           \
    using Record = Name;                    \
    using Above = Base;                     \
    static constexpr JsonField kJsonFields[] = {
#define RECORD(Name, words) RECORD_OF(Name, NoRecord, words)
#define FIELD(type, member, value, place) \
  json_field<Record, decltype(Record::member), &Record::member>(#member, place),
#define RECORD_END(Name)                                                       \
  }                                                                            \
  ;                                                                            \
  static constexpr JsonRecord kRecord = record_of<Record, Above>(kJsonFields); \
  return kRecord;                                                              \
  }
#include "schema/records.def"
#undef RECORD
#undef RECORD_OF
#undef FIELD
#undef RECORD_END

json record_to_json(const JsonRecord& of, const void* record) {
  json out = json::object();
  write(of, const_cast<void*>(record), out);  // members are only read
  return out;
}

Expected<void> record_from_json(const JsonRecord& of, const json& j, void* record) {
  Reader in(j, of.what);
  read(of, record, in);
  return in.done();
}

std::string record_to_text(const JsonRecord& of, const void* record) {
  return dump(record_to_json(of, record));
}

Expected<void> record_from_text(const JsonRecord& of, std::string_view text, void* record) {
  SWEEP_GET(const json j, parse_json(text));
  return record_from_json(of, j, record);
}

json to_json(const Metrics& m) {
  json j = json::object();
  for_each_metric(m, [&](const FieldInfo& info, const auto& member) {
    if (member) j[info.key] = value(member);
  });
  return j;
}

template <>
Expected<Metrics> from_json<Metrics>(const json& j) {
  Metrics m;
  Reader in(j, "metrics");
  for_each_metric(m, [&](const FieldInfo& info, auto& member) { in.get(info.key, member); });
  return in.done(std::move(m));
}

namespace fields {

Reader::Reader(const json& object, std::string_view what) : object_(object), what_(what) {
  if (!object.is_object())
    error_ = fmt::format("{}: an object is expected, found {}", what, object.type_name());
}

Reader& Reader::get(std::string_view key, void* out, const JsonType& type, bool needed) {
  if (error_) return *this;
  const auto it = object_.find(key);
  if (it == object_.end() && needed) error_ = fmt::format("{}: '{}' is missing", what_, key);
  if (it == object_.end()) return *this;
  std::string inner;
  if (!type.read(*it, out, &inner))
    error_ =
        fmt::format("{}: '{}' {}: {}", what_, key,
                    type.words.empty() ? "has the wrong type or is out of range"
                                       : fmt::format("takes one of {}, not", fmt::join(type.words, ", ")),
                    inner.empty() ? dump(*it).substr(0, 80) : inner);
  return *this;
}

Expected<void> Reader::done() const {
  if (error_) return fail(*error_);
  return {};
}

json columns(const std::vector<StepSample>& samples) {
  json out = json::object();
  for (const JsonField& field : json_record(Of<StepSample>()).fields) {
    bool known = !field.type->is_optional;  // or any sample has it
    json::array_t column;
    column.reserve(samples.size());
    for (const StepSample& sample : samples) {
      const void* member = field.in(const_cast<StepSample*>(&sample));
      known = known || !field.type->has_no_content(member);
      column.push_back(field.type->write(member));
    }
    if (known) out[field.key] = std::move(column);
  }
  return out;
}

bool read_columns(const json& j, std::vector<StepSample>& out) {
  out.clear();
  if (!j.is_object()) return false;
  const auto fields = json_record(Of<StepSample>()).fields;
  std::optional<std::size_t> length;
  for (const JsonField& field : fields) {
    const auto column = j.find(field.key);
    if (column == j.end()) continue;
    if (!column->is_array() || column->size() != length.value_or(column->size())) return false;
    length = column->size();
  }
  if (length.value_or(0) > kMostSamples) return false;
  out.resize(length.value_or(0));
  for (const JsonField& field : fields) {
    const auto column = j.find(field.key);
    if (column == j.end()) continue;  // the member takes the default
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!field.type->read((*column)[i], field.in(&out[i]), nullptr)) return false;
  }
  return true;
}

}  // namespace fields
}  // namespace sweep
