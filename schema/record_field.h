// RecordField: how one field of a record is named in JSON, and the column in which the database keeps it. The
// lists of fields are in schema/records.def.
#pragma once
#include <concepts>
#include <type_traits>

namespace sweep {

// The place of a field. A null name means the member's name.
struct FieldPlace {
  bool stored = true;
  const char* column = nullptr;
  const char* key = nullptr;
  bool absent_is_empty = false, zero_keeps = false;

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
};

// The words of the table.
namespace field_places {
constexpr FieldPlace column(const char* name = nullptr) {
  return {.stored = true, .column = name};
}
constexpr FieldPlace no_column() {
  return {.stored = false};
}
}  // namespace field_places

template <bool kStored>
struct RecordField {
  static constexpr bool kIsStored = kStored;
  const char* key;
  const char* column;  // column of a stored field
  bool absent_is_empty, zero_keeps;
};

template <bool kStored>
constexpr RecordField<kStored> record_field(const char* member, const FieldPlace& place) {
  return {place.key ? place.key : member, place.column ? place.column : member, place.absent_is_empty,
          place.zero_keeps};
}

// A reference to a record, const or not.
template <class T, class Record>
concept RefersTo = std::same_as<std::remove_const_t<T>, Record>;

}  // namespace sweep
