// Initial values: the same bits for every split, share, device path and piece, and little room beside them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/model/parameters.h"

namespace sweep::model {
namespace {

class InitialValuesTest : public ::testing::TestWithParam<kernels::Path> {
 protected:
  void SetUp() override { kernels::set_path(GetParam()); }
  void TearDown() override { kernels::set_path(kernels::Path::kFused); }

  static void add_stacks(Parameters& p) {
    p.begin_group();
    p.add({{"table", 12, {0, 40, {{24, 10}}}, 2}}, 16, Init::kUniform);
    p.add({{"q", 3, {}}, {"k", 5, {}}}, 24, Init::kUniform);
    p.add({{"conv", 9, {1, 60, {{4, 7}, {20, 3}, {41, 11}}}}}, 21, Init::kUniform);
    p.add({{"norm", 24, {}}}, 0, Init::kOne);
    p.add({{"bias", 24, {}}}, 0, Init::kZero);
    p.add({{"vector", 7, {0, 21, {{7, 7}}}}}, 0, Init::kUniform);
  }
  static at::Tensor whole(at::ScalarType type, std::unique_ptr<Parameters>& out) {
    out = std::make_unique<Parameters>(InitialValues(3));
    add_stacks(*out);
    out->layout({at::TensorOptions().dtype(type), 1 << 20});
    return out->buckets()[0].values;
  }
};

at::Tensor drawn(const std::string& name, std::int64_t rows, std::int64_t columns) {
  Parameters p(InitialValues(3));
  p.begin_group();
  p.add({{name, rows, {}}}, columns, Init::kUniform);
  p.layout({at::TensorOptions().dtype(at::kFloat), 1 << 20});
  return p[0].clone();
}

TEST_P(InitialValuesTest, OfASliceAreThoseOfTheWholeTensor) {
  std::unique_ptr<Parameters> p;
  whole(at::kFloat, p);
  const at::Tensor table = (*p)[0], conv = drawn("conv", 9, 60);
  EXPECT_TRUE(table.narrow(0, 0, 10).equal(drawn("table", 40, 16).narrow(0, 24, 10)));
  EXPECT_TRUE(table.narrow(0, 10, 2).equal(at::zeros({2, 16}))) << "padding";
  EXPECT_TRUE((*p)[1].narrow(0, 3, 5).equal(drawn("k", 5, 24)));
  EXPECT_TRUE(
      (*p)[2].equal(at::cat({conv.narrow(1, 4, 7), conv.narrow(1, 20, 3), conv.narrow(1, 41, 11)}, 1)));
  EXPECT_TRUE((*p)[5].equal(drawn("vector", 21, 0).narrow(0, 7, 7)));
}

TEST_P(InitialValuesTest, OfAnyShareAreThatPartOfTheWhole) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    std::unique_ptr<Parameters> p;
    const at::Tensor all = whole(type, p);
    for (const std::int64_t size : {1, 13, 100, 257}) {
      for (std::int64_t first = 0; first + size <= all.numel(); first += size) {
        const at::Tensor share = at::full({size}, NAN, all.options());
        p->fill(p->buckets()[0], share, first);
        ASSERT_TRUE(share.equal(all.narrow(0, first, size))) << type << ' ' << size << ' ' << first;
      }
    }
  }
}

TEST_P(InitialValuesTest, AreTheSameBitsOnBothPaths) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    std::unique_ptr<Parameters> p;
    const at::Tensor mine = whole(type, p).clone();
    kernels::set_path(GetParam() == kernels::Path::kFused ? kernels::Path::kPlain : kernels::Path::kFused);
    EXPECT_TRUE(whole(type, p).equal(mine)) << type;
    kernels::set_path(GetParam());
  }
}

// More than a piece, in both directions, and indices beyond 32 bits.
TEST_P(InitialValuesTest, DoNotDependOnPieces) {
  const auto fill = [](const at::Tensor& out, const kernels::Region& region) {
    kernels::fill_uniform(out, 0x1234567890abcdefull, 0.5, region, at::kCPU);
    return out;
  };
  const std::int64_t far = (std::int64_t{1} << 32) - 50;
  const at::Tensor wide = fill(at::empty({2, (1 << 21) + 100}), {far, 1 << 22});
  EXPECT_TRUE(fill(at::empty({1, 300}), {far + (1 << 22) + (1 << 21) - 200, 0})
                  .equal(wide.narrow(0, 1, 1).narrow(1, (1 << 21) - 200, 300)));
  const at::Tensor tall = fill(at::empty({(1 << 21) / 1000 + 100, 1000}), {7, 5000});
  EXPECT_TRUE(
      fill(at::empty({1, 900}), {7 + 5000 * 2150 + 3, 0}).equal(tall.narrow(0, 2150, 1).narrow(1, 3, 900)));
  EXPECT_LE(wide.abs().max().item<double>(), 0.5);
  EXPECT_NEAR(wide.mean().item<double>(), 0, 1e-3);
  EXPECT_NEAR(wide.var().item<double>(), 1.0 / 12, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Paths, InitialValuesTest,
                         ::testing::Values(kernels::Path::kFused, kernels::Path::kPlain),
                         [](const auto& info) {
                           return info.param == kernels::Path::kFused ? "Fused" : "Plain";
                         });

// A GPU would allocate two words of eight bytes for each element of a piece.
TEST(InitialValuesOfAGpu, AreDrawnInPiecesOf32MiB) {
  memory::install(c10::DeviceType::Meta);
  kernels::set_path(kernels::Path::kPlain);
  const at::Tensor out = at::empty({1 << 15, 1 << 15}, at::TensorOptions(at::kMeta).dtype(at::kBFloat16));
  const std::int64_t before = memory::stats(c10::DeviceType::Meta).current;
  memory::reset_peak(c10::DeviceType::Meta);
  kernels::fill_uniform(out, 1, 0.5, {0, 1 << 15}, at::kMeta);
  const std::int64_t room = memory::stats(c10::DeviceType::Meta).peak - before;
  kernels::set_path(kernels::Path::kFused);
  EXPECT_GE(room, 32 << 20);
  EXPECT_LE(room, 33 << 20);
}

}  // namespace
}  // namespace sweep::model
