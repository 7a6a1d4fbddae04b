// Operations on a share against the whole: cross-entropy and embedding over parts of a vocabulary, attention
// over parts of the positions.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench_kernels/kernels/attention_block.h"
#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {
namespace {

constexpr std::int64_t kRows = 12, kVocab = 30, kShares = 3, kHeld = kVocab / kShares;

void expect_near(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_LE((a - b).abs().max().item<double>(), 1e-12) << a << b;
}

class Shares : public ::testing::TestWithParam<Path> {
 protected:
  void SetUp() override { set_path(GetParam()); }
  void TearDown() override { set_path(Path::kFused); }
  static at::Tensor random(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble); }
};

TEST_P(Shares, OfTheVocabularyGiveTheWholeCrossEntropy) {
  const at::Tensor logits = random({kRows, kVocab}).mul_(4), labels = at::randint(kVocab, {kRows}, at::kLong);
  const at::Tensor lse = logits.logsumexp(-1), total = at::zeros({1}, at::kDouble), whole = logits.clone();
  cross_entropy(whole, labels, 0.5, total);
  std::vector<at::Tensor> parts, sums, found;
  for (std::int64_t share = 0; share < kShares; ++share) {
    parts.push_back(logits.narrow(1, share * kHeld, kHeld).clone());
    sums.push_back(at::empty({2, kRows}, at::kDouble));
    found.push_back(at::empty({kRows}, at::kDouble));
    cross_entropy_share(parts.back(), labels, share * kHeld, found.back(), sums.back().select(0, 1));
  }
  const at::Tensor largest = at::stack(found).amax(0), joined = at::zeros({2, kRows}, at::kDouble);
  for (std::int64_t share = 0; share < kShares; ++share) {
    cross_entropy_weigh(found[share], largest, sums[share]);
    joined.add_(sums[share]);
  }
  const at::Tensor again = at::empty({kRows}, at::kDouble), sum = at::zeros({1}, at::kDouble);
  cross_entropy_join(largest, joined, again, labels, sum);
  expect_near(again, lse);
  expect_near(sum, total);
  for (std::int64_t share = 0; share < kShares; ++share)
    cross_entropy_backward(parts[share], labels, lse, 0.5, share * kHeld);
  expect_near(at::cat(parts, 1), whole);
}

// Padding behind each row of logits takes no probability, gets no gradient and is not touched.
TEST_P(Shares, PaddingBehindTheLogitsIsNotSeen) {
  constexpr std::int64_t kPadding = 3;
  const at::Tensor labels = at::randint(kVocab, {kRows}, at::kLong), logits = random({kRows, kVocab}).mul_(4);
  const at::Tensor padded = at::full({kRows, kVocab + kPadding}, 1e9, at::kDouble);
  const at::Tensor entries = padded.narrow(1, 0, kVocab);
  at::Tensor(entries).copy_(logits);
  const auto stats = [&] {
    return std::array{at::empty({kRows}, at::kDouble), at::empty({kRows}, at::kDouble)};
  };
  const auto [lse, picked] = stats();
  const auto [lse_beside, picked_beside] = stats();
  cross_entropy_share(logits, labels, 5, lse, picked);
  cross_entropy_share(entries, labels, 5, lse_beside, picked_beside);
  expect_near(lse_beside, lse);
  expect_near(picked_beside, picked);
  const at::Tensor total = at::zeros({1}, at::kDouble), total_beside = at::zeros({1}, at::kDouble);
  cross_entropy(logits, labels, 0.5, total);
  cross_entropy(entries, labels, 0.5, total_beside);
  expect_near(total_beside, total);
  expect_near(entries, logits);
  expect_near(padded.narrow(1, kVocab, kPadding), at::full({kRows, kPadding}, 1e9, at::kDouble));
}

TEST_P(Shares, OfTheTableAddUpToTheEmbeddingAtGivenPlaces) {
  const at::Tensor table = random({kVocab, 8}), positions = random({20, 8}), grad = random({kRows, 8});
  const at::Tensor ids = at::randint(kVocab, {kRows}, at::kLong),
                   places = at::tensor({2, 3, 9, 10}, at::kLong);
  const at::Tensor out = at::zeros({kRows, 8}, at::kDouble), dtable = at::zeros_like(table),
                   dpositions = at::zeros_like(positions);
  for (std::int64_t first = 0; first < kVocab; first += kHeld) {
    const at::Tensor part = at::empty_like(out);
    const Tokens tokens{ids, 4, first, places};
    embed(table.narrow(0, first, kHeld), first == 0 ? positions : at::Tensor(), tokens, part);
    out.add_(part);
    embed_backward(grad, tokens, {dtable.narrow(0, first, kHeld), true}, {dpositions, false});
  }
  expect_near(out, table.index_select(0, ids) + positions.index_select(0, places).repeat({3, 1}));
  expect_near(dtable, at::zeros_like(table).index_add_(0, ids, grad));
  expect_near(dpositions, at::zeros_like(positions).index_add_(0, places, grad.view({3, 4, 8}).sum(0)));
}

// Queries at the late half of the positions: everything early, and the late half causally.
TEST_P(Shares, OfThePositionsMergeIntoTheWholeAttention) {
  const AttentionShape shape{2, 10, 4, 2, 16, AttentionKernel::kFlash, {}};
  const at::Tensor qkv = random({20, 8 * 16}), dout = random({20, 64}), dqkv = at::empty_like(qkv);
  const AttentionState whole = attention(qkv, shape, {});
  attention_backward(dout, qkv, shape, whole, dqkv);
  const auto rows = [](const at::Tensor& t, std::int64_t head, std::int64_t heads) {
    return t.view({2, 10, -1, 16}).narrow(2, head, heads);
  };
  const auto half = [](const at::Tensor& t, std::int64_t which) { return t.narrow(1, which * 5, 5); };
  const at::Tensor q = half(rows(qkv, 0, 4), 1), k = rows(qkv, 4, 2), v = rows(qkv, 6, 2);
  const AttentionBlock sum = attention_block(q, half(k, 1), half(v, 1), true, 0.25);
  merge_blocks(sum, attention_block(q, half(k, 0), half(v, 0), false, 0.25));
  expect_near(sum.out, half(rows(whole.out, 0, 4), 1));

  const at::Tensor dq = at::zeros_like(q), dk = at::zeros_like(half(k, 0)), dv = at::zeros_like(dk);
  const at::Tensor grad = half(rows(dout, 0, 4), 1);
  attention_block_backward({grad, q, half(k, 1), half(v, 1), sum, true, 0.25}, {dq, dk, dv, false});
  expect_near(dk, half(rows(dqkv, 4, 2), 1));
  expect_near(dv, half(rows(dqkv, 6, 2), 1));
  attention_block_backward({grad, q, half(k, 0), half(v, 0), sum, false, 0.25}, {dq, dk, dv, true});
  expect_near(dq, half(rows(dqkv, 0, 4), 1));
}

INSTANTIATE_TEST_SUITE_P(Paths, Shares, ::testing::Values(Path::kFused, Path::kPlain),
                         [](const auto& info) { return info.param == Path::kFused ? "Fused" : "Plain"; });

}  // namespace
}  // namespace sweep::kernels
