// Known files: published measurements whose columns tell them.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

namespace sweep::imports {

// Facts that the file's text says of every row, and the models behind its labels.
struct KnownFile {
  std::string_view name;
  std::vector<std::string_view> columns;
  std::vector<std::pair<std::string_view, std::string_view>> set, models;
};

const KnownFile& playbook();

}  // namespace sweep::imports
