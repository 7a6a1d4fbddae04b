// The kinds of GPU in the value of axis `hardware`: one trial over nodes of several kinds names them joined by +, as in
// a100-80gb+h100-sxm-80gb. Node i is of kind i modulo their number, in the order that they are written, and each kind has as
// many nodes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "schema/trial.h"

namespace sweep {

inline bool is_mixed(std::string_view hardware) {
  return hardware.find('+') != std::string_view::npos;
}
// The names of the kinds; hardware of one kind is its own name alone.
std::vector<std::string> kinds_of(std::string_view hardware);
std::string kind_of_node(std::string_view hardware, i64 node);

}  // namespace sweep
