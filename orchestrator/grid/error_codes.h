// Codes of what a grid file, a recipe or a site profile may not say. The subject of such an error is the key,
// axis or value that is wrong; its file, line and column are the place.
#pragma once
#include "base/expected.h"

namespace sweep::grid {

// What is wrong there: a code and its subject, or what another error says of them.
struct Fault {
  Fault(ErrorCode a_code, std::string_view a_subject) : code(a_code), subject(a_subject) {}
  Fault(const Error& error) : code(error.code), subject(error.subject) {}
  ErrorCode code;
  std::string_view subject;
};

namespace codes {

// The text itself.
inline constexpr ErrorCode kTooLarge{"grid.too_large"};        // the file
inline constexpr ErrorCode kNotText{"grid.not_text"};          // bytes outside UTF-8, control characters
inline constexpr ErrorCode kInvalidYaml{"grid.invalid_yaml"};  // not YAML, with none of the codes below
inline constexpr ErrorCode kUnusedYaml{"grid.unused_yaml"};    // YAML that has no use in a grid file
inline constexpr ErrorCode kIndentation{"grid.indentation"};   // by a tab, or unlike its neighbours
inline constexpr ErrorCode kNotClosed{"grid.not_closed"};      // a quote or a bracket
inline constexpr ErrorCode kBadAlias{"grid.bad_alias"};
inline constexpr ErrorCode kTooDeep{"grid.too_deep"};
inline constexpr ErrorCode kTooMany{"grid.too_many"};  // values, items, clauses, models
inline constexpr ErrorCode kTooLong{"grid.too_long"};  // a word or a text
inline constexpr ErrorCode kRepeatedKey{"grid.repeated_key"};

// Keys and names.
inline constexpr ErrorCode kUnknownKey{"grid.unknown_key"};
inline constexpr ErrorCode kUnknownAxis{"grid.unknown_axis"};
inline constexpr ErrorCode kUnknownName{"grid.unknown_name"};  // in an expression or a template
inline constexpr ErrorCode kUnknownModel{"grid.unknown_model"};
inline constexpr ErrorCode kUnknownRecipe{"grid.unknown_recipe"};
inline constexpr ErrorCode kMissing{"grid.missing"};  // a key that is needed
inline constexpr ErrorCode kBadName{"grid.bad_name"};
inline constexpr ErrorCode kNameTaken{"grid.name_taken"};
inline constexpr ErrorCode kGivenTwice{"grid.given_twice"};
inline constexpr ErrorCode kConflict{"grid.conflict"};         // two keys of which one may stand
inline constexpr ErrorCode kUnusedAxis{"grid.unused_axis"};    // its values reach no program
inline constexpr ErrorCode kNotSettable{"grid.not_settable"};  // follows from something else

// Values.
inline constexpr ErrorCode kWrongType{"grid.wrong_type"};
inline constexpr ErrorCode kOutOfRange{"grid.out_of_range"};
inline constexpr ErrorCode kUnknownValue{"grid.unknown_value"};  // a word that is none of the listed
inline constexpr ErrorCode kBadForm{"grid.bad_form"};            // of a value that has a form of its own
inline constexpr ErrorCode kEmpty{"grid.empty"};
inline constexpr ErrorCode kEmptyRange{"grid.empty_range"};
inline constexpr ErrorCode kNotAPowerOfTwo{"grid.not_a_power_of_two"};
inline constexpr ErrorCode kUnequalLengths{"grid.unequal_lengths"};
inline constexpr ErrorCode kTooManyPoints{"grid.too_many_points"};
inline constexpr ErrorCode kSameModel{"grid.same_model"};
inline constexpr ErrorCode kNotAFile{"grid.not_a_file"};  // of a workload: its name or its content

// Expressions.
inline constexpr ErrorCode kSyntax{"grid.syntax"};
inline constexpr ErrorCode kUnknownFunction{"grid.unknown_function"};
inline constexpr ErrorCode kBadNumber{"grid.bad_number"};
inline constexpr ErrorCode kTypeMismatch{"grid.type_mismatch"};
inline constexpr ErrorCode kNotACondition{"grid.not_a_condition"};
inline constexpr ErrorCode kNoValue{"grid.no_value"};  // an optional axis that nothing sets
inline constexpr ErrorCode kCycle{"grid.cycle"};
inline constexpr ErrorCode kOverflow{"grid.overflow"};

}  // namespace codes
}  // namespace sweep::grid
