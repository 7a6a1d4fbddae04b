// NcclLog: what NCCL's own words (NCCL_DEBUG=INFO) say of an attempt: over which transports its ranks talk,
// with which algorithms and how many channels. Pure text; any bytes are read, and what is not understood is
// left out.
#pragma once
#include <string_view>

#include "schema/records.h"

namespace sweep::agent {

NcclLog read_nccl_log(std::string_view text);
// True if it names no way between ranks, and no warning.
bool is_empty(const NcclLog&);

}  // namespace sweep::agent
