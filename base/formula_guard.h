// A spreadsheet runs a text cell as a formula that begins with = + - @ tab or return. Files for spreadsheets
// hold such text behind an apostrophe; readers of such files take it off again.
#pragma once
#include <string>
#include <string_view>

namespace sweep {

bool reads_as_number(std::string_view);  // all of it
// Text that would run as a formula and is no number, or that would read as guarded text.
bool needs_guard(std::string_view);
std::string guarded(std::string_view);         // behind an apostrophe, if it needs one
std::string_view unguarded(std::string_view);  // the inverse; text that was not guarded stays as it is

}  // namespace sweep
