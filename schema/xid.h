// Xid: the number by which NVIDIA's driver reports an error of a GPU. Which numbers mean that the GPU itself
// failed follows NVIDIA's "XID Errors" catalogue.
#pragma once
#include <cstdint>
#include <string_view>

namespace sweep {

// The GPU, its memory or its link failed, whatever the program did: another machine may run the same trial.
bool is_hardware_fault(std::int64_t xid);
std::string_view meaning_of_xid(
    std::int64_t xid);  // "the GPU has fallen off the bus"; empty: not in the table

}  // namespace sweep
