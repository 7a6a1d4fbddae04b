// NcclLog: what NCCL's own words (NCCL_DEBUG=INFO) say of an attempt: over which transports its ranks talk,
// with which algorithms and how many channels. Pure text; any bytes are read, and what is not understood is
// left out.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "schema/outcome.h"
#include "schema/trial.h"

namespace sweep::agent {

struct NcclLog {
  // "2.18.3"; empty: not said.
  std::string version;
  // The network between nodes: IB, Socket, or a plug-in's name.
  std::string network;
  // The transports of channels: P2P/CUMEM, SHM/direct, NET/IB, NET/IB/GDRDMA, NET/Socket, ...
  std::set<std::string> transports;
  // "AllReduce RING/SIMPLE"; only where NCCL_DEBUG_SUBSYS has TUNING.
  std::set<std::string> algorithms;
  i64 channels = 0, nvls_channels = 0;
  // The topology has it (GRAPH).
  bool nvlink = false;
  // The first few.
  std::vector<std::string> warnings;
  bool empty() const { return network.empty() && transports.empty() && channels == 0 && warnings.empty(); }
  bool gpu_direct() const;
  // Data between nodes goes over TCP.
  bool sockets() const;
  std::optional<Transport> transport() const;
};

NcclLog read_nccl_log(std::string_view text);
nlohmann::json to_json(const NcclLog&);

}  // namespace sweep::agent
