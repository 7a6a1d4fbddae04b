// Names that options of training programs commonly have, and the axes that they mean.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace sweep::interop {

// "--per-device-train-batch-size" and "--batch_size" -> micro_batch_size. none: an option of the program
// alone.
std::optional<std::string_view> axis_of_option(std::string_view option);
// Options for a number of ranks or an address to meet at, and the template that replaces their value.
// "--nproc_per_node" -> gpus_per_node.
std::optional<std::string_view> rank_name_of_option(std::string_view option);
// "--Learning-Rate" -> "learning_rate"; never empty.
std::string axis_name_from(std::string_view option);

}  // namespace sweep::interop
