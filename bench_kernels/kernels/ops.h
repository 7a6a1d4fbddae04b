// The step's operations on tensors: each writes into tensors its caller allocated, so that what a step holds
// is the same whatever computes it. On CPU they run the fused loops of rows.h; on CUDA compositions of
// library operators (the plain equivalents, which CPU can be asked for too); on meta tensors nothing, or, for
// a dry run on behalf of CUDA, what the CUDA composition would allocate.
//
// Temporaries of CPU kernels (casts around a bf16 matmul, packed operands) are scratch
// (counting_allocator.h).
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace sweep::kernels {

// The implementation that runs; one per process, set before the first step. kFused is the default. kDevice: CPU
// tensors take the fused kernels of a device, which a test runs by the CPU shim (device_ops.h).
enum class Path { kFused, kPlain, kDevice };
void set_path(Path);
Path path();

// The destination of a parameter's gradient: `grad` (allocated, same shape), added to its content if `add`.
struct GradOut {
  at::Tensor grad;
  bool add = false;
};
// Whether a product of 16-bit rows like these writes a weight's gradient in fp32 at once: on a GPU, and on meta tensors on
// behalf of one. Elsewhere the gradient is made in the type of the rows.
bool writes_sums(const at::Tensor& like, at::ScalarType grads);
// Adds or stores a gradient computed elsewhere.
void put(const GradOut& to, const at::Tensor& value);

// Rows of a product may lie in blocks, [blocks, rows, width] instead of [T, width], each block elsewhere: a GPU takes
// them in one launch, but for fp8, where each block is a product of its own. False: give them one after another.
bool takes_blocks(const at::Tensor& like);
// The same rows as [T, width]: a copy where blocks lie apart.
at::Tensor rows_of(const at::Tensor& blocks);

// out[T, N] = in[T, K] @ w + bias + residual; w is [N, K], or [K, N] when `transposed` (GPT-2's Conv1D).
// Undefined bias or residual: absent.
// fp8: the product, and those of the gradients, on fp8 units (fp8.h).
struct Weight {
  at::Tensor w, bias;
  bool transposed = false;
  bool fp8 = false;
};
void linear(const at::Tensor& in, const Weight&, const at::Tensor& residual, const at::Tensor& out);
// din = dout @ w^T (din undefined: not wanted; din_add: on top of what is there).
void linear_backward_input(const at::Tensor& dout, const Weight&, const at::Tensor& din);
void linear_backward_weight(const at::Tensor& dout, const at::Tensor& in, bool transposed, const GradOut& dw,
                            bool fp8 = false);
// out = scale * a @ b (+ out when add); out may be columns of wider rows, and of 16-bit factors in fp32.
void scaled_product(const at::Tensor& a, const at::Tensor& b, double scale, const at::Tensor& out, bool add);
void bias_backward(const at::Tensor& dout, const GradOut& db);
// to += what (rows, or one row for all); undefined: nothing.
void add(const at::Tensor& to, const at::Tensor& what);

// Norm over the last dimension; mean and rstd are [T] in the accumulation type. RMSNorm has neither bias nor
// mean.
struct Norm {
  at::Tensor w, b;
  double eps = 1e-5;
  double plus = 0;  // RMSNorm: rows are multiplied by w + plus, which is not rounded to the stored type
  bool rms() const { return !b.defined(); }
};
struct NormStats {
  at::Tensor mean, rstd;
};
// The start of the product that comes after the norm: out (undefined: none is wanted) becomes x + bias (may
// be undefined). Only where norm_starts_product().
struct Start {
  at::Tensor bias, out;
};
NormStats norm(const at::Tensor& x, const Norm&, const at::Tensor& y, const Start& = {});
// Whether a fused kernel of a device does it in the same pass.
bool norm_starts_product(const at::Tensor& x);
// dx = residual + gradient of the norm; dx may be dy.
void norm_backward(const at::Tensor& dy, const at::Tensor& x, const Norm&, const NormStats&,
                   const at::Tensor& residual, const at::Tensor& dx, const GradOut& dw, const GradOut& db);

// Rotary positions, in place on the first `heads` vectors of each row; cos and sin are [seq, head_dim / 2].
void rope(const at::Tensor& rows, std::int64_t heads, std::int64_t head_dim, const at::Tensor& cos,
          const at::Tensor& sin, bool backward);

// The angles that q and k were turned by; undefined: they were not.
struct Angles {
  at::Tensor cos, sin;
};

// in: [T, 2N] with the gate first, of kGelu, kGeluExact and kRelu [T, N]. kGeglu and kGelu: GELU in its tanh form;
// kGeluExact: x times the normal distribution function (Hendrycks and Gimpel 2016, arXiv 1606.08415, section 2).
// kClampedSwiglu, of gpt-oss (arXiv 2508.10925, section 2.2; constants of its modelling code): g sigmoid(kSwigluGain g)
// (u + 1), where g is the gate and u the other half, both at most kSwigluLimit, u also at least -kSwigluLimit.
enum class Activation { kSwiglu, kGeglu, kGelu, kGeluExact, kClampedSwiglu, kRelu };
inline constexpr double kSwigluGain = 1.702, kSwigluLimit = 7;
void activation(Activation, const at::Tensor& in, const at::Tensor& out);
// in becomes its gradient; grad (of out) becomes out again.
void activation_backward(Activation, const at::Tensor& in, const at::Tensor& grad);

// kMath has the scores in memory; the others never do. kSdpa (the library's memory-efficient kernel) and
// kCudnn are for GPUs only, and see all keys before a query.
enum class AttentionKernel { kMath, kFlash, kSdpa, kCudnn };

// Documents one after another in the rows of a micro-batch, the padding behind them too: none reaches over the end
// of a sequence. Rows of one see its earlier rows only.
struct Documents {
  std::vector<std::int64_t> ends;  // the first row (0), and the row behind the last of each
  at::Tensor device_ends;          // the same where the kernels are, int32
  at::Tensor places;               // int64 [B * S]: each row's position within its document
  std::int64_t longest = 0;        // rows
  std::int64_t count() const { return static_cast<std::int64_t>(ends.size()) - 1; }
};

// Attention on qkv rows [B * S, (heads + 2 kv_heads) * head_dim]. Of cross-attention, whose keys are of another
// sequence, the rows are flat: those of the queries [B * S, heads * head_dim], then those of keys and values
// [B * keys, 2 kv_heads * head_dim].
struct AttentionShape {
  std::int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0, head_dim = 0;
  AttentionKernel kernel = AttentionKernel::kFlash;
  std::optional<std::int64_t> window;  // number of keys a query sees, itself included; nullopt: all before it
  const Documents* documents = nullptr;  // null: each sequence is one. Of kMath and kFlash
  bool autocast = false;  // kMath: the softmax in fp32, kept so and as the product reads it (autocast.h)
  bool causal = true;     // else each query sees all keys: without a window or documents
  std::int64_t keys = 0;  // cross-attention: keys of each sequence; 0: the rows' own
  // [heads]: a logit of each head that takes a share of each query's attention and has no value (gpt-oss, arXiv
  // 2508.10925, section 2.1); undefined: there are none. Of kFlash.
  at::Tensor sinks = {};
  // [heads, seq, keys]: what is added to the scores of every sequence (T5's relative positions); undefined: nothing. Of
  // kMath.
  at::Tensor bias = {};
  bool scaled = true;  // scores are divided by the root of head_dim; with a bias they are not
  std::int64_t key_count() const { return keys > 0 ? keys : seq; }
};
struct AttentionState {
  at::Tensor out;  // [B * S, heads * head_dim]
  at::Tensor
      saved;  // flash: log-sum-exp [B, S, heads], sinks included; math: probabilities [B, heads, S, keys]
  at::Tensor mask;         // flash with a window on CPU: the additive [S, S] mask it was given
  at::Tensor narrow = {};  // math under autocast: the probabilities in 16 bits, beside those in fp32
};
// The additive mask a windowed flash kernel on CPU needs, made once per model; undefined where none is
// needed.
at::Tensor window_mask(const AttentionShape&, const at::TensorOptions&);
AttentionState attention(const at::Tensor& qkv, const AttentionShape&, const at::Tensor& mask);
// dqkv is written whole, q and k turned back by the angles. `dout` is [B * S, heads * head_dim]. The bias's gradient is
// added to dbias, [heads, seq, keys] in the accumulation type.
void attention_backward(const at::Tensor& dout, const at::Tensor& qkv, const AttentionShape&,
                        const AttentionState&, const at::Tensor& dqkv, const Angles& = {},
                        const at::Tensor& dbias = {});

// The gradient [heads] of the sinks of attention(), in the accumulation type.
at::Tensor sinks_backward(const at::Tensor& dout, const AttentionShape&, const AttentionState&);

// The first entry of the share of the vocabulary that is held; nullopt: all of it is.
using FirstEntry = std::optional<std::int64_t>;

// The next tokens of rows. With holes some are negative: these rows have no loss and no gradient.
struct Labels {
  Labels(at::Tensor label_ids, bool has_holes = false) : ids(std::move(label_ids)), holes(has_holes) {}
  at::Tensor ids;
  bool holes;
};

// Tokens [B * S]; one whose entry is not held has a row of zeros. places (int64 [S]; undefined: 0, 1, ...)
// are the positions of a sequence's tokens.
struct Tokens {
  at::Tensor ids;
  std::int64_t seq = 0;
  FirstEntry first = {};
  at::Tensor places = {};
};
// Rows of the table, plus learned positions; positions undefined: none.
void embed(const at::Tensor& table, const at::Tensor& positions, const Tokens&, const at::Tensor& out);
void embed_backward(const at::Tensor& dout, const Tokens&, const GradOut& dtable, const GradOut& dpositions);

// Logits below are [T, entries]; their rows may lie further apart (columns of padding between them are not
// touched). total[0], a double, grows by the sum over rows of the negative log-likelihood, and the logits
// become its gradient in place: (softmax - onehot) * scale. A GPU does so for pieces of the rows, with at most
// 256 MiB in the accumulation type.
void cross_entropy(const at::Tensor& logits, const Labels&, double scale, const at::Tensor& total);
// The same over a vocabulary in shares, whose logits begin at entry `first` here, in four steps: each
// share's lse and picked (the label's logit, 0 where it is elsewhere) [T]; the shares' largest lse is to be
// found between the first two, and the sums [2, T] over the shares between the second and the third, which
// turns lse into that of the whole.
void cross_entropy_share(const at::Tensor& logits, const Labels&, std::int64_t first, const at::Tensor& lse,
                         const at::Tensor& picked);
void cross_entropy_weigh(const at::Tensor& lse, const at::Tensor& largest, const at::Tensor& sums);
void cross_entropy_join(const at::Tensor& largest, const at::Tensor& sums, const at::Tensor& lse,
                        const Labels&, const at::Tensor& total);
void cross_entropy_backward(const at::Tensor& logits, const Labels&, const at::Tensor& lse, double scale,
                            std::int64_t first);

// total[0] (float64) grows by weight times the sum of the squares of a flat tensor.
void add_squares(const at::Tensor& flat, double weight, const at::Tensor& total);

// The elements of a whole tensor that a filled one [rows, n] is: row r is n elements from first + r * columns
// on.
struct Region {
  std::int64_t first = 0, columns = 0;
};
// Fills rows (which may lie apart) with what the region's elements are for the key: uniform in [-bound,
// bound], the same bits wherever they are drawn. A GPU draws its own, in pieces of 32 MiB; for host memory
// beside it `on` draws them.
void fill_uniform(const at::Tensor& out, std::uint64_t key, double bound, const Region&, at::Device on);

// The accumulation type of a stored type: float, or double for double.
at::ScalarType accumulate_type(at::ScalarType);

}  // namespace sweep::kernels
