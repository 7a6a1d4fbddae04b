// Paged AdamW: the updates of fused AdamW to the bit, whatever the pages, and no more on the device than its window.
#include "bench_kernels/parallel/paged_states.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::parallel {
namespace {

std::vector<at::Tensor> randoms(std::initializer_list<std::int64_t> sizes) {
  std::vector<at::Tensor> all;
  for (const std::int64_t size : sizes) all.push_back(at::randn({size}, at::kFloat));
  return all;
}

std::vector<at::Tensor> clones(const std::vector<at::Tensor>& of) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& t : of) all.push_back(t.clone());
  return all;
}

TEST(PagedStates, UpdateAsFusedAdamWWhateverThePages) {
  for (const std::int64_t page : {1, 7, 100, 1000}) {  // pages that divide no tensor, one for all of a tensor
    const auto start = randoms({100, 3, 64, 250});
    const auto paged = clones(start), whole = clones(start);
    const optim::OptimizerOptions options{.lr = 1e-2};
    PagedStates states(paged, options, page);
    optim::Optimizer optimizer(whole, OptimizerKind::kFused, options);
    for (int step = 0; step < 4; ++step) {
      const auto grads = randoms({100, 3, 64, 250});
      optimizer.step(grads);
      states.begin_step();
      for (std::size_t i = 0; i < grads.size(); ++i) states.update(i, grads[i]);
      for (std::size_t i = 0; i < grads.size(); ++i)
        // The tail of a vector loop may round otherwise than its body: some ulps, and a step is 1e-2.
        EXPECT_LE((paged[i] - whole[i]).abs().max().item<float>(), 1e-6f)
            << "page " << page << " tensor " << i;
    }
  }
}

TEST(PagedStates, TwoPagesAreOnTheDeviceAtOnceAndNoneAfterwards) {
  constexpr auto kDevice = c10::DeviceType::Meta;
  memory::install(kDevice);
  const auto options = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  const std::vector<at::Tensor> updated{at::empty({10 * 1024}, options), at::empty({1024}, options)};
  const auto before = memory::stats(kDevice);
  PagedStates states(updated, {}, 2048);
  const auto built = memory::stats(kDevice);
  EXPECT_EQ(built.host_current - before.host_current, 2 * 4 * 11 * 1024)
      << "both moments wait in host memory";
  memory::reset_peak(kDevice);
  states.begin_step();
  for (std::size_t i = 0; i < updated.size(); ++i) states.update(i, updated[i]);
  EXPECT_EQ(memory::stats(kDevice).peak - built.current, 2 * 2 * 4 * 2048);
  EXPECT_EQ(memory::stats(kDevice).current, built.current);
}

}  // namespace
}  // namespace sweep::parallel
