// The agent's GPUs by NVML, through a fake library that each test describes.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "worker/agent/evidence/node_watch.h"

namespace sweep::agent {
namespace {

constexpr const char* kLibrary = SWEEP_BIN_DIR "/libfake_nvml.so";

class GpuWatch : public ::testing::Test {
 protected:
  ~GpuWatch() override { ::unsetenv("CUDA_VISIBLE_DEVICES"); }
  std::unique_ptr<Nvml> nvml(const char* gpus, const char* visible = nullptr) {
    ::setenv("FAKE_NVML", gpus, 1);
    if (visible != nullptr) ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    return Nvml::load(kLibrary);
  }
  int asked() const {
    void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
    const auto function = reinterpret_cast<int (*)()>(::dlsym(library, "fake_nvml_asked"));
    const int times = function();
    ::dlclose(library);
    return times;
  }
  void report_xid(int gpu, unsigned long long xid) const {
    void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
    reinterpret_cast<void (*)(int, unsigned long long)>(::dlsym(library, "fake_nvml_xid"))(gpu, xid);
    ::dlclose(library);
  }
  // Looks as the agent does until the GPUs were asked that often.
  AttemptEnd measured(NodeWatch& watch, const std::vector<i64>& slots, int questions) {
    auto span = watch.begin(slots, /*on_gpu=*/true);
    const int before = asked();
    while (asked() < before + questions) {
      span.sample({::getpid()}, true);
      std::this_thread::yield();
    }
    AttemptEnd end;
    while (!end.util_mean) span.report(end);  // the answer is about to be stored
    return end;
  }
};

TEST_F(GpuWatch, AGpuIsKnownByTheBeginningOfItsUuid) {
  const auto found = nvml("GPU-aa11:1 GPU-bb22:2 GPU-bb33:3");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->named("GPU-bb2"), 1);
  EXPECT_EQ(found->named("2"), 2);
  EXPECT_FALSE(found->named("GPU-bb")) << "two have it";
  EXPECT_FALSE(found->named("MIG-bb2"));
  EXPECT_FALSE(found->named("3"));
  EXPECT_FALSE(found->named(""));
}

TEST_F(GpuWatch, NumbersCountTheGpusThatMayBeUsed) {
  const auto found = nvml("denied GPU-aa:7 denied GPU-bb:90");
  ASSERT_NE(found, nullptr);
  ASSERT_EQ(found->count(), 2);
  EXPECT_EQ(found->uuid(*found->named("1")), "GPU-bb");
}

TEST_F(GpuWatch, UtilisationIsThatOfTheSlotsGpu) {
  NodeWatch watch(nvml("GPU-aa:10 GPU-bb:60 GPU-cc:90", "GPU-cc,GPU-bb"));
  const AttemptEnd end = measured(watch, {1}, 2);
  EXPECT_EQ(*end.util_mean, 60);
  ASSERT_EQ(end.load.nodes.size(), 1u);
  EXPECT_EQ(end.load.nodes[0].util.back(), 60);
  EXPECT_EQ(end.load.nodes[0].memory_bytes.back(), 10.0 * (1u << 30)) << "what is used of it";
}

TEST_F(GpuWatch, AGpuThatNvmlDoesNotKnowHasNoUtilisation) {
  NodeWatch unknown(nvml("GPU-aa:10", "MIG-77"));
  NodeWatch without(nullptr);
  for (NodeWatch* watch : {&unknown, &without}) {
    auto span = watch->begin({0}, /*on_gpu=*/true);
    AttemptEnd end;
    const auto until = std::chrono::steady_clock::now() + 3 * GpuSampler::kPause;
    while (std::chrono::steady_clock::now() < until) span.sample({::getpid()}, true);
    span.report(end);
    EXPECT_FALSE(end.util_mean) << "a processor's load is not a GPU's";
  }
}

TEST_F(GpuWatch, AnXidIsOfTheSlotsGpuAndToldOnce) {
  NodeWatch watch(nvml("GPU-aa:0 GPU-bb:0 GPU-cc:0", "GPU-cc,GPU-bb,GPU-aa"));
  auto span = watch.begin({1, 2}, /*on_gpu=*/true);  // GPU-bb, GPU-aa
  report_xid(2, 79);                                 // an Xid of a GPU that is not the attempt's
  report_xid(0, 31);
  const auto errors = span.gpu_errors();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0], (GpuError{"", "GPU-aa", 1, 31}));
  EXPECT_TRUE(span.gpu_errors().empty());
}

TEST_F(GpuWatch, WithoutAGpuThereAreNoXids) {
  NodeWatch watch(nullptr);
  EXPECT_TRUE(watch.begin({0}, /*on_gpu=*/true).gpu_errors().empty());
}

TEST_F(GpuWatch, MemoryOfOtherPeoplesProcessesIsNoTrace) {
  NodeWatch watch(nvml("GPU-aa:0:4711 GPU-bb:0:4712:815"));
  EXPECT_EQ(watch.begin({0}, true).still_on_gpu({815}), "");
  EXPECT_NE(watch.begin({1}, true).still_on_gpu({815}).find("process 815"), std::string::npos);
  EXPECT_EQ(watch.begin({1}, true).still_on_gpu({1}), "");
}

}  // namespace
}  // namespace sweep::agent
