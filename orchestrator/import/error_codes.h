// Codes of tables that cannot be imported. The subject is the column, option or field that is wrong; file and
// line are the place.
#pragma once
#include "base/expected.h"

namespace sweep::imports::codes {

// The text of the table.
inline constexpr ErrorCode kNotText{"import.not_text"};
inline constexpr ErrorCode kEmptyFile{"import.empty_file"};
inline constexpr ErrorCode kSeparator{"import.separator"};  // no commas
inline constexpr ErrorCode kBadQuote{"import.bad_quote"};
inline constexpr ErrorCode kTooLong{"import.too_long"};  // a field, a row, the table
inline constexpr ErrorCode kFieldCount{"import.field_count"};

// Columns, and what options say of them.
inline constexpr ErrorCode kBadOption{"import.bad_option"};  // not of the form that it takes
inline constexpr ErrorCode kNoSuchColumn{"import.no_such_column"};
inline constexpr ErrorCode kRepeated{
    "import.repeated"};  // two columns, or a column and an option, for one field
inline constexpr ErrorCode kNoName{"import.no_name"};
inline constexpr ErrorCode kUnknownField{"import.unknown_field"};
inline constexpr ErrorCode kComputed{"import.computed"};  // a field that is computed here
inline constexpr ErrorCode kUnit{"import.unit"};          // missing, or not one of the field's
inline constexpr ErrorCode kMissing{"import.missing"};    // a field that is needed

// Cells.
inline constexpr ErrorCode kNotANumber{"import.not_a_number"};
inline constexpr ErrorCode kNotWhole{"import.not_whole"};
inline constexpr ErrorCode kOutOfRange{"import.out_of_range"};
inline constexpr ErrorCode kUnknownValue{"import.unknown_value"};
inline constexpr ErrorCode kUnequal{"import.unequal"};  // two columns contradict each other
inline constexpr ErrorCode kRehearsed{"import.rehearsed"};
inline constexpr ErrorCode kNotJson{"import.not_json"};

}  // namespace sweep::imports::codes
