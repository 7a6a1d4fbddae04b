// LibTorch's kernels on lists of tensors, by their names and the table of sizes that they are given.
#include <gtest/gtest.h>

#include <cstdint>

#include "worker/phantom/library_kernels.h"

namespace sweep::phantom {
namespace {

constexpr const char* kAdamw =
    "_ZN2at6native59_GLOBAL__N__72f4167f_18_fused_adam_impl_cu_169fdea025multi_tensor_apply_kernelINS1_"
    "32FusedOptimizerTensorListMetadataILi4EEENS1_20FusedAdamMathFunctorIfLi4ELNS0_9ADAM_"
    "MODEE1ELb0EEEJPKfdddddb"
    "SB_SB_EEEvT_T0_DpT1_";

TEST(ListKernel, IsKnownByName) {
  const ListKernel adamw = ListKernel::named(kAdamw);
  EXPECT_EQ(adamw.lists, 4);
  EXPECT_EQ(adamw.passes, 7) << "four lists are read, three written";
  EXPECT_EQ(adamw.width, 4);
  const ListKernel lerp = ListKernel::named(
      "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi3EEENS1_"
      "17PointwiseOpFunctorIN3c108BFloat16ELi3ELi3ELi0EEEJSt4plusIfEEEEvT_T0_DpT1_");
  EXPECT_EQ(lerp.lists, 3);
  EXPECT_EQ(lerp.passes, 4);
  EXPECT_EQ(lerp.width, 2);
  EXPECT_EQ(ListKernel::named(
                "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEENS1_"
                "11CopyFunctorIfN3c104HalfE"
                "Li2ELi1ELi1EEEJNS0_4CopyIfS8_EEEEEvT_T0_DpT1_")
                .passes,
            2);
  const ListKernel sgd = ListKernel::named(
      "_ZN2at6native50_GLOBAL__N__c32bc2c2_17_FusedSgdKernel_cu_a550329a25multi_tensor_apply_kernelINS1_"
      "18TensorListMetadataILi3EEENS1_19FusedSgdMathFunctorIN3c108BFloat16ELi3EEEJddPfddbbbS9_S9_EEEvT_T0_"
      "DpT1_");
  EXPECT_EQ(sgd.lists, 3) << "parameters, gradients, momentum";
  EXPECT_EQ(sgd.passes, 5);
  EXPECT_EQ(sgd.width, 2);
  EXPECT_FALSE(sgd.counts) << "SGD counts no steps";
  EXPECT_EQ(ListKernel::named("_ZN2at6native29vectorized_elementwise_kernelILi4E").lists, 0);
}

TEST(ListKernel, OfAnotherLibraryIsNone) {
  EXPECT_EQ(
      ListKernel::named("_Z25multi_tensor_apply_kernelI18TensorListMetadataILi4ELb0EEPVi11AdamFunctorIfLi4EE"
                        "JfEEvT_T0_DpT1_")
          .lists,
      0);
  EXPECT_EQ(
      ListKernel::named("_Z25multi_tensor_apply_kernelI18TensorListMetadataILi2ELb0EEPVi12ScaleFunctorIffE"
                        "JfEEvT_T0_DpT1_")
          .lists,
      0);
}

TEST(ListKernel, OfAFusedSgdReadsAllAndWritesAllButGradients) {
  EXPECT_EQ(ListKernel::named(
                "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEE"
                "NS1_19FusedSgdMathFunctorIN3c108BFloat16ELi2EEEJddPfddbbbS9_S9_EEEvT_T0_DpT1_")
                .passes,
            3);
}

// Two tensors of 65,537 and 3 numbers: two blocks of the one and one of the other.
TEST(ListKernel, CountsTheNumbersOfItsBlocks) {
  struct {
    const void* addresses[4][36];
    std::int64_t sizes[36];
    const void* counts[36];
    unsigned char tensor[320];
    int chunk[320];
  } table{};
  table.sizes[0] = 65537, table.sizes[1] = 3;
  table.tensor[2] = 1, table.chunk[1] = 1;
  const ListKernel adamw = ListKernel::named(kAdamw);
  EXPECT_EQ(adamw.bytes(&table, 3), 7.0 * 4 * 65540);
  EXPECT_EQ(adamw.bytes(&table, 2), 7.0 * 4 * 65537);
}

}  // namespace
}  // namespace sweep::phantom
