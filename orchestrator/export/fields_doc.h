// The reference of every column as Markdown, from the table in schema/fields.def; docs/fields.md is this
// text.
#pragma once
#include <string>

namespace sweep::exports {

std::string fields_markdown();

}  // namespace sweep::exports
