// Labels of a trial (Trial::labels): a JSON object of scalars, and the units of those that have one.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace sweep {

// The member that holds the units: an object, name -> unit. No axis and no label can have that name.
inline constexpr std::string_view kLabelUnits = "@units";

// The member that lists the axes which the program of a workload knows, a space before and after each name.
// The trial has no value of other axes, though its id is made of all of them. If the member is missing, all
// are known. It is the first member of the text.
inline constexpr std::string_view kLabelAxes = "@axes";
bool knows_axis(std::string_view labels, std::string_view axis);

// The label of the section `stages`: the name of the trial's stage. And the member with its place, from 0.
inline constexpr std::string_view kStageLabel = "stage";
inline constexpr std::string_view kStageNumber = "@stage";

// True for members that are labels; those that begin with @ belong to sweep itself.
inline bool is_label_name(std::string_view member) {
  return !member.starts_with('@');
}

// The members of the text, those that begin with @ among them. A text that is no JSON object has none.
nlohmann::json label_members(std::string_view labels);

}  // namespace sweep
