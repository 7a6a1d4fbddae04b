// FieldPlace: how a field of a record is named in JSON, the column in which the database keeps it, and how nodes' values
// become one. RecordField is what visitors of members see of it. The lists of fields are in schema/records.def.
#pragma once
#include <concepts>
#include <type_traits>

namespace sweep {

// How the values that the nodes of an attempt report become one (worker/agent/node/merged_end.cpp).
enum class Merge {
  kUnstated,
  kHead,     // only the head agent knows it
  kLeading,  // the value of the node where the failure began
  kFields,   // each field of the record by its own rule
  kAllOf,
  kSum,
  kMean,  // over ranks
  kRootMeanSquare,
  kEach,       // lists, one after the other
  kSentences,  // joined by ;
  kNames,      // each once, joined by +
  kEarliest,
  kLatest,
};

// The place of a field. A null name means the member's name.
struct FieldPlace {
  bool stored = true;
  const char* column = nullptr;
  const char* key = nullptr;
  bool absent_is_empty = false, zero_keeps = false, only_given = false, is_needed = false;
  Merge merge = Merge::kUnstated;

  // The key of the field in JSON.
  constexpr FieldPlace sent_as(const char* name) const {
    FieldPlace out = *this;
    out.key = name;
    return out;
  }
  // The column refuses NULL: an absent value is stored as ''.
  constexpr FieldPlace empty_if_absent() const {
    FieldPlace out = *this;
    out.absent_is_empty = true;
    return out;
  }
  // An update with 0 leaves what is stored.
  constexpr FieldPlace kept_if_zero() const {
    FieldPlace out = *this;
    out.zero_keeps = true;
    return out;
  }
  // JSON leaves out a value without content.
  constexpr FieldPlace given() const {
    FieldPlace out = *this;
    out.only_given = true;
    return out;
  }
  // JSON without it is no such record.
  constexpr FieldPlace needed() const {
    FieldPlace out = *this;
    out.is_needed = true;
    return out;
  }
  constexpr FieldPlace merged(Merge rule) const {
    FieldPlace out = *this;
    out.merge = rule;
    return out;
  }
};

// The words of the table.
namespace field_places {
using enum Merge;
constexpr FieldPlace column(const char* name = nullptr) {
  return {.stored = true, .column = name};
}
constexpr FieldPlace no_column() {
  return {.stored = false};
}
}  // namespace field_places

template <bool kStored, Merge kRule>
struct RecordField {
  static constexpr bool kIsStored = kStored;
  static constexpr Merge kMerge = kRule;
  const char* key;
  const char* column;  // column of a stored field
  bool absent_is_empty, zero_keeps, is_needed;
};

template <bool kStored, Merge kRule = Merge::kUnstated>
constexpr RecordField<kStored, kRule> record_field(const char* member, const FieldPlace& place) {
  return {place.key ? place.key : member, place.column ? place.column : member, place.absent_is_empty,
          place.zero_keeps, place.is_needed};
}

// Names a record where no value is at hand.
template <class T>
struct Of {};
struct NoRecord {};
// The name of a record in errors.
template <class T>
inline constexpr const char* kRecordWords = nullptr;
template <class T>
concept Recorded = kRecordWords<T>
!= nullptr;

// A reference to a record, const or not.
template <class T, class Record>
concept RefersTo = std::same_as<std::remove_const_t<T>, Record>;

}  // namespace sweep
