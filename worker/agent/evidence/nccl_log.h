// NcclLog: what NCCL's own words (NCCL_DEBUG=INFO) say of an attempt: over which transports its ranks talk, with which
// algorithms and how many channels. Pure text; any bytes are read, and what is not understood is left out.
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
  std::string version;  // "2.18.3"; empty: not said
  std::string network;  // what goes between nodes: IB, Socket, or a plug-in's name
  std::set<std::string>
      transports;  // of channels: P2P/CUMEM, SHM/direct, NET/IB, NET/IB/GDRDMA, NET/Socket, ...
  std::set<std::string> algorithms;  // "AllReduce RING/SIMPLE"; only where TUNING was asked for
  i64 channels = 0, nvls_channels = 0;
  bool nvlink = false;                // the topology has it (GRAPH)
  std::vector<std::string> warnings;  // the first few
  bool empty() const { return network.empty() && transports.empty() && channels == 0 && warnings.empty(); }
  bool gpu_direct() const;
  bool sockets() const;  // data between nodes goes over TCP
  std::optional<Transport> transport() const;
};

NcclLog read_nccl_log(std::string_view text);
nlohmann::json to_json(const NcclLog&);

}  // namespace sweep::agent
