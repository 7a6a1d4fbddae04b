// NCCL's words as people posted them, and what is made of them.
#include "worker/agent/evidence/nccl_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "schema/spool.h"

namespace sweep::agent {
namespace {

using Names = std::set<std::string>;

NcclLog golden(const std::string& name) {
  const auto text = files::read(std::string(SWEEP_SOURCE_DIR) + "/tests/golden/nccl/" + name);
  EXPECT_TRUE(text) << (text ? "" : text.error().message);
  return read_nccl_log(text.value_or(""));
}

TEST(NcclLog, TellsSocketsFromRemoteMemoryAccess) {
  const NcclLog log = golden("sockets.log");
  EXPECT_EQ(log.network, "Socket");
  EXPECT_EQ(log.version, "2.8.3");
  EXPECT_EQ(log.transports, (Names{"NET/Socket", "SHM/direct"}));
  EXPECT_TRUE(log.sockets);
  EXPECT_FALSE(log.gpu_direct);
  EXPECT_EQ(log.channels, 2);
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_EQ(log.warnings[0], "Failed to open libibverbs.so[.1]");
}

TEST(NcclLog, ReadsInfinibandNvlinkAndAlgorithms) {
  const NcclLog log = golden("infiniband.log");
  EXPECT_EQ(log.transports, (Names{"NET/IBext_v8/GDRDMA", "P2P/CUMEM"}));
  EXPECT_FALSE(log.sockets);
  EXPECT_TRUE(log.gpu_direct);
  EXPECT_TRUE(log.nvlink);
  EXPECT_EQ(log.channels, 8);
  EXPECT_EQ(log.algorithms, (Names{"TREE/LL", "RING/SIMPLE"}));
}

TEST(NcclLog, ReadsOlderForms) {
  const NcclLog log = golden("older.log");
  EXPECT_EQ(log.transports, (Names{"P2P/IPC", "NET/IB/GDRDMA"}));
  EXPECT_EQ(log.network, "IB");
  EXPECT_FALSE(log.nvlink);
}

TEST(NcclLog, ReadsChoicesByName) {
  const NcclLog log = read_nccl_log(
      "n1:7:7 [0] NCCL INFO AllReduce: 4194304 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}\n");
  EXPECT_EQ(log.algorithms, Names{"AllReduce RING/SIMPLE"});
  EXPECT_EQ(to_json(log)["algorithms"][0], "AllReduce RING/SIMPLE");
}

TEST(NcclLog, SaysNothingOfNothing) {
  EXPECT_TRUE(read_nccl_log("").empty());
  EXPECT_TRUE(read_nccl_log("a rank's own words\nNCCL INFO \n").empty());
}

}  // namespace
}  // namespace sweep::agent
