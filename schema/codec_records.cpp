// JSON of all records of the table.
#include "schema/json_fields.h"

namespace sweep {

using fields::Reader;
using fields::value;
using nlohmann::json;

namespace {

const StepSample kNoSample;  // stands for the list of fields

template <class T>
bool is_absent(const T& member) {
  if constexpr (fields::IsOptional<T>::value)
    return !member;
  else
    return false;
}

template <class T>
bool has_no_content(const T& member) {
  if constexpr (std::equality_comparable<T>)
    return member == T();
  else
    return false;
}

// Leaves out absent members: a reader takes the default, which is absent.
template <class T>
json write(const T& object) {
  json j = json::object();
  for_each_field(object, [&](const auto& field, const auto& member) {
    if (!is_absent(member) && !(field.only_given && has_no_content(member))) j[field.key] = value(member);
  });
  return j;
}

template <class T>
Expected<T> read(const json& j, std::string_view what) {
  T object;
  Reader in(j, what);
  for_each_field(object,
                 [&](const auto& field, auto& member) { in.get(field.key, member, field.is_needed); });
  return in.done(std::move(object));
}

}  // namespace

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
  for_each_metric(
      m, [&](const FieldInfo& info, auto& member) { in.get(std::string(info.key).c_str(), member); });
  return in.done(std::move(m));
}

namespace fields {

json columns(const std::vector<StepSample>& samples) {
  struct Column {
    const char* key;
    json::array_t values;
    bool known;  // true if any sample has it
  };
  std::vector<Column> lists;
  for_each_field(kNoSample, [&](const auto& field, const auto& none) {
    lists.push_back({field.key, {}, !is_absent(none)});
  });
  for (Column& column : lists) column.values.reserve(samples.size());
  for (const StepSample& sample : samples) {
    auto list = lists.begin();
    for_each_field(sample, [&](const auto&, const auto& member) {
      list->known |= !is_absent(member);
      (list++)->values.push_back(value(member));
    });
  }
  json out = json::object();
  for (Column& column : lists)
    if (column.known) out[column.key] = std::move(column.values);
  return out;
}

bool read_columns(const json& j, std::vector<StepSample>& out) {
  out.clear();
  if (!j.is_object()) return false;
  std::vector<const json::array_t*> lists;  // nullptr: the column is absent, its member takes the default
  std::optional<std::size_t> length;
  bool sound = true;
  for_each_field(kNoSample, [&](const auto& field, const auto&) {
    const auto it = j.find(field.key);
    const auto* list = it == j.end() ? nullptr : it->template get_ptr<const json::array_t*>();
    lists.push_back(list);
    if (it == j.end()) return;
    if (list && !length) length = list->size();
    sound = sound && list && list->size() == *length;
  });
  if (!sound || length.value_or(0) > kMostSamples) return false;
  out.resize(length.value_or(0));
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto list = lists.begin();
    for_each_field(out[i], [&](const auto&, auto& member) {
      if (const auto* column = *list++) sound = sound && Reader::read((*column)[i], member);
    });
  }
  return sound;
}

}  // namespace fields

template <Recorded T>
json to_json(const T& record) {
  return write(record);
}
template <Recorded T>
std::string to_text(const T& record) {
  return dump(write(record));
}
template <Recorded T>
Expected<T> from_text(std::string_view text) {
  return parse_json(text).and_then([](const json& j) { return from_json<T>(j); });
}
template <Recorded T>
Expected<T> from_json(const json& j) {
  return read<T>(j, kRecordWords<T>);
}
#define RECORD(Name, words)                             \
  template json to_json(const Name&);                   \
  template Expected<Name> from_json<Name>(const json&); \
  template std::string to_text(const Name&);            \
  template Expected<Name> from_text<Name>(std::string_view);
#define RECORD_OF(Name, Base, words) RECORD(Name, words)
#define FIELD(type, member, value, place)
#define RECORD_END(Name)
#include "schema/records.def"
#undef RECORD
#undef RECORD_OF
#undef FIELD
#undef RECORD_END

}  // namespace sweep
