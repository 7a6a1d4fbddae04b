// The share of a GPU's dense peak in 16 bits that the best large matrix product reaches there, measured: power and clocks
// leave less of a data sheet on one GPU than on another.
#pragma once
#include <string_view>

namespace sweep::predict {

// 0: nobody measured it.
double product_reach(std::string_view hardware);

}  // namespace sweep::predict
