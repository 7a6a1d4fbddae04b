// Which GPUs a machine has, by their device files and by CUDA_VISIBLE_DEVICES.
#include "runtime/visible_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace sweep {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class VisibleGpus : public ::testing::Test {
 protected:
  VisibleGpus() { fs::create_directories(folder_); }
  ~VisibleGpus() override {
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    fs::remove_all(folder_);
  }
  void file(const char* name) const { std::ofstream(folder_ / name) << ' '; }
  const fs::path folder_ = fs::temp_directory_path() / ("visible_gpus." + std::to_string(::getpid()));
};

TEST_F(VisibleGpus, AContainerWithOneGpuOfEightHasOne) {
  EXPECT_EQ(gpu_device_files(folder_), 0);
  for (const char* name : {"nvidia3", "nvidiactl", "nvidia-uvm", "nvidia", "nvidia1x"}) file(name);
  EXPECT_EQ(gpu_device_files(folder_), 1);
  file("nvidia12");
  EXPECT_EQ(gpu_device_files(folder_), 2);
  EXPECT_EQ(gpu_device_files(folder_ / "none"), 0);
}

TEST_F(VisibleGpus, AreThoseThatTheVariableLists) {
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(visible_gpus(2), ElementsAre("0", "1"));
  ::setenv("CUDA_VISIBLE_DEVICES", "4,GPU-1b2c", 1);
  EXPECT_THAT(visible_gpus(8), ElementsAre("4", "GPU-1b2c"));
  ::setenv("CUDA_VISIBLE_DEVICES", "2,-1,3", 1);
  EXPECT_THAT(visible_gpus(8), ElementsAre("2"));
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_THAT(visible_gpus(8), IsEmpty());
}

}  // namespace
}  // namespace sweep
