// The list of families: one line for each file of families/.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "bench_kernels/shape/family.h"

#define SWEEP_FAMILIES(FAMILY) \
  FAMILY(kLlama)               \
  FAMILY(kMistral)             \
  FAMILY(kQwen2)               \
  FAMILY(kQwen3)               \
  FAMILY(kQwen3Moe)            \
  FAMILY(kGpt2)                \
  FAMILY(kMixtral)             \
  FAMILY(kGemma)               \
  FAMILY(kGemma3)              \
  FAMILY(kGptOss)              \
  FAMILY(kDeepseekV2)          \
  FAMILY(kDeepseekV3)          \
  FAMILY(kBlenderbot)          \
  FAMILY(kT5)                  \
  FAMILY(kT5Relu)

namespace sweep::shape {
namespace families {
#define SWEEP_DECLARE(name) extern const Family name;
SWEEP_FAMILIES(SWEEP_DECLARE)
#undef SWEEP_DECLARE
}  // namespace families

std::span<const Family* const> all_families() {
#define SWEEP_ENTRY(name) &families::name,
  static constexpr const Family* kAll[] = {SWEEP_FAMILIES(SWEEP_ENTRY)};
#undef SWEEP_ENTRY
  return kAll;
}

const Family* find_family(std::string_view name) {
  for (const Family* family : all_families())
    if (family->name == name) return family;
  return nullptr;
}

const Family& family_of(const ModelSpec& spec) {
  const Family* family = find_family(spec.family);
  return family ? *family : families::kLlama;
}

i64 position_elements(const ModelSpec& m) {
  return family_of(m).relative_positions ? kRelativeBuckets * m.heads : m.max_positions * m.hidden_size;
}

std::string family_names() {
  std::vector<std::string_view> names;
  for (const Family* family : all_families()) names.push_back(family->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace sweep::shape
