// Records: the reports of ranks and agents about an attempt, which are raw measurements, the result that follows from
// them, and what the programs tell each other. The members, with their meaning, are in schema/records.def and
// schema/messages.def.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schema/attempt.h"
#include "schema/metrics.h"
#include "schema/outcome.h"
#include "schema/progress.h"
#include "schema/record_field.h"
#include "schema/trial.h"

namespace sweep {

// An answer to a question that may not have been put. JSON has null for a question without an answer.
template <class T>
struct Asked {
  bool asked = false;
  std::optional<T> answer;
  bool operator==(const Asked&) const = default;
};
using Counts = std::map<std::string, i64>;
using Texts = std::map<std::string, std::string>;
struct CollectiveCount;
using CollectiveCounts = std::map<std::string, CollectiveCount>;
// A peer, and the speed of the link from it.
using Links = std::vector<std::pair<i64, double>>;

#define RECORD(Name, words) struct Name {
#define RECORD_OF(Name, Base, words) struct Name : Base {
#define FIELD(type, member, value, place) type member = value;
#define RECORD_END(Name)                        \
  bool operator==(const Name&) const = default; \
  }                                             \
  ;
#include "schema/records.def"
#undef RECORD
#undef RECORD_OF
#undef FIELD
#undef RECORD_END

// Calls f(RecordField<>, member pointer) for each field of a record, in the order of the table.
#define RECORD_OF(Name, Base, words)                          \
  template <>                                                 \
  inline constexpr const char* kRecordWords<Name> = words;    \
  template <class F>                                          \
  void for_each_member([[maybe_unused]] Of<Name> of, F&& f) { \
    using Record = Name;                                      \
    if constexpr (!std::is_same_v<Base, NoRecord>) for_each_member(Of<Base>(), f);
#define RECORD(Name, words) RECORD_OF(Name, NoRecord, words)
#define FIELD(type, member, value, place)                                         \
  {                                                                               \
    using namespace field_places;                                                 \
    constexpr FieldPlace at = place;                                              \
    static constexpr auto field = record_field<at.stored, at.merge>(#member, at); \
    f(field, &Record::member);                                                    \
  }
#define RECORD_END(Name) }
#include "schema/records.def"
#undef RECORD
#undef RECORD_OF
#undef FIELD
#undef RECORD_END

// Calls f(RecordField<>, member) for each.
template <class R, class F>
requires Recorded<std::remove_const_t<R>>
void for_each_field(R& record, F&& f) {
  for_each_member(Of<std::remove_const_t<R>>(),
                  [&](const auto& field, auto member) { f(field, record.*member); });
}

}  // namespace sweep
