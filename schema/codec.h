// JSON <-> structs, the canonical form and the id of a trial. Readers refuse wrong types with a sentence;
// unknown keys are ignored (a newer writer), absent keys take the default, or refuse the record where the field is
// .needed().
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "schema/attempt.h"
#include "schema/command_spec.h"
#include "schema/metrics.h"
#include "schema/plan_entry.h"
#include "schema/records.h"

namespace sweep {

// Parses JSON text with bounds on size and depth (untrusted input); the error names the byte.
Expected<nlohmann::json> parse_json(std::string_view bytes, std::size_t max_bytes = 64u << 20,
                                    int max_depth = 64);
// One line, valid UTF-8 whatever the strings hold (invalid bytes replaced); non-finite numbers become null.
std::string dump(const nlohmann::json&);

nlohmann::json to_json(const RopeScaling&);
nlohmann::json to_json(const YarnScaling&);
nlohmann::json to_json(const ModelSpec&);
nlohmann::json to_json(const Trial&);
nlohmann::json to_json(const Metrics&);
nlohmann::json to_json(const MeasurePlan&);
nlohmann::json to_json(const Deadlines&);
nlohmann::json to_json(const Attempt&);

// from_json<T>: T is one of the types above.
template <class T>
Expected<T> from_json(const nlohmann::json&);
template <>
Expected<RopeScaling> from_json<RopeScaling>(const nlohmann::json&);
template <>
Expected<YarnScaling> from_json<YarnScaling>(const nlohmann::json&);
template <>
Expected<ModelSpec> from_json<ModelSpec>(const nlohmann::json&);
template <>
Expected<Trial> from_json<Trial>(const nlohmann::json&);
template <>
Expected<Metrics> from_json<Metrics>(const nlohmann::json&);
template <>
Expected<MeasurePlan> from_json<MeasurePlan>(const nlohmann::json&);
template <>
Expected<Deadlines> from_json<Deadlines>(const nlohmann::json&);
template <>
Expected<Attempt> from_json<Attempt>(const nlohmann::json&);
template <>
Expected<CommandSpec> from_json<CommandSpec>(const nlohmann::json&);

// The fields of a record as the codec has them: one table for each, and one reader and writer for all.
struct JsonRecord;
#define RECORD(Name, words) const JsonRecord& json_record(Of<Name>);
#define RECORD_OF(Name, Base, words) RECORD(Name, words)
#define FIELD(type, member, value, place)
#define RECORD_END(Name)
#include "schema/records.def"
#undef RECORD
#undef RECORD_OF
#undef FIELD
#undef RECORD_END
// `record` is of the type of the table. After an error it is partly read: the templates below return a whole one.
nlohmann::json record_to_json(const JsonRecord&, const void* record);
Expected<void> record_from_json(const JsonRecord&, const nlohmann::json&, void* record);
std::string record_to_text(const JsonRecord&, const void* record);
Expected<void> record_from_text(const JsonRecord&, std::string_view text, void* record);

// The JSON of every record (schema/records.def). Samples are columns: one array per member of StepSample, all
// of one length. The result is nlohmann::json, which is complete only where this is called.
template <Recorded T>
auto to_json(const T& record) {
  return record_to_json(json_record(Of<T>()), &record);
}
template <Recorded T>
Expected<T> from_json(const nlohmann::json& j) {
  T record;
  SWEEP_TRY(record_from_json(json_record(Of<T>()), j, &record));
  return record;
}
// The text in which a database keeps a record, and in which another process says it.
template <Recorded T>
std::string to_text(const T& record) {
  return record_to_text(json_record(Of<T>()), &record);
}
template <Recorded T>
Expected<T> from_text(std::string_view text) {
  T record;
  SWEEP_TRY(record_from_text(json_record(Of<T>()), text, &record));
  return record;
}

// The dimensions of a model that differ from those of ModelSpec{}, as a JSON object.
nlohmann::json changed_dimensions(const ModelSpec&);
// The configuration a trial id hashes: the model's dimensions and every axis that differs from its frozen
// default, keys sorted, numbers in shortest form. Label, order of keys and spelt-out defaults leave it
// unchanged.
std::string canonical(const Trial&);
// 16 hexadecimal digits of the name-based UUID (version 5, SHA-1; RFC 4122) of canonical().
std::string trial_id(const Trial&);
// 16 hexadecimal digits of the name-based UUID of any text: for ids that must be the same everywhere.
std::string name_hash(std::string_view text);

}  // namespace sweep
