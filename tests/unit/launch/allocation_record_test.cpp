#include "orchestrator/launch/allocation_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "schema/spool.h"
#include "tests/support/must.h"
#include "tests/support/temporary_folder.h"

namespace sweep::launch {
namespace {

class AllocationRecord : public ::testing::Test {
 protected:
  AllocationRecord() { request_.spool = folder_; }
  void write(std::string_view text) {
    ASSERT_TRUE(files::write_atomically(request_.spool / "allocation.json", text));
  }
  const TemporaryFolder folder_;
  AllocationRequest request_;
};

TEST_F(AllocationRecord, RoundTripsTheRequestAndWhatTheLauncherAdded) {
  request_.nodes = 3, request_.slots = 2, request_.gpus = 8, request_.ranks_per_node = 4;
  request_.hardware = "h100-sxm-80gb", request_.seconds = 77.5;
  ASSERT_TRUE(keep_record(request_, "slurm", {{"job", 12}}));
  const auto record = must(read_record(request_.spool, "slurm"));
  ASSERT_TRUE(record);
  EXPECT_EQ((*record)["job"], 12);
  AllocationRequest again;
  restore(again, *record);
  EXPECT_EQ(again.nodes, 3);
  EXPECT_EQ(again.slots, 2);
  EXPECT_EQ(again.gpus, 8);
  EXPECT_EQ(again.ranks_per_node, 4);
  EXPECT_EQ(again.hardware, "h100-sxm-80gb");
  EXPECT_EQ(again.seconds, 77.5);
}

TEST_F(AllocationRecord, AbsentOrAnotherLaunchersIsNone) {
  EXPECT_FALSE(*read_record(request_.spool, "ssh"));
  ASSERT_TRUE(keep_record(request_, "slurm", {{"job", nullptr}}));
  EXPECT_FALSE(*read_record(request_.spool, "ssh"));
}

TEST_F(AllocationRecord, DamageIsSaidWithTheFile) {
  for (const char* text : {"{\"launcher\": \"ssh\"", "[1]", ""}) {
    write(text);
    const auto record = read_record(request_.spool, "ssh");
    ASSERT_FALSE(record) << text;
    EXPECT_NE(record.error().message.find("allocation.json"), std::string::npos) << record.error().message;
  }
}

TEST_F(AllocationRecord, ValuesOfAnotherTypeAreTheLeastOnes) {
  write(R"({"launcher":"ssh","nodes":"four","slots":-1,"gpus":null,"hardware":7,"seconds":"x"})");
  const auto record = read_record(request_.spool, "ssh");
  ASSERT_TRUE(record && *record);
  restore(request_, **record);
  EXPECT_EQ(request_.nodes, 1);
  EXPECT_EQ(request_.slots, 1);
  EXPECT_EQ(request_.gpus, 0);
  EXPECT_EQ(request_.ranks_per_node, 1);
  EXPECT_EQ(request_.seconds, AllocationRequest().seconds);
}

}  // namespace
}  // namespace sweep::launch
