// The arguments of the fused kernels of a device: one plain struct for each, which the host fills
// (device_ops.cpp) and the kernel reads. NVRTC compiles this too: it includes nothing.
#pragma once

namespace sweep::device {

using Index = long long;

// in: rows of n elements, or of 2n with the gate first; out, or the gradient of it, rows of n.
struct ActivationArgs {
  void *in, *out;
  Index rows, n;
};

// y = (x - mean) * rstd * w + b; an RMSNorm has neither mean nor b, and multiplies by w + plus. start (may be null)
// becomes x + bias, the bias may be null.
struct NormArgs {
  const void *x, *w, *b;
  void *y, *mean, *rstd;
  const void* bias;
  void* start;
  Index rows, n;
  double eps;
  float plus;
};

// dx = residual (may be null) + gradient of the norm. Each block adds up the weights' gradients of its rows
// in partial[block][n], with a bias [block][2][n]; in shared memory until its end where they fit.
struct NormBackwardArgs {
  const void *dy, *x, *w, *mean, *rstd, *residual;
  void *dx, *partial;
  Index rows, n;
  float plus;
  int in_shared;
};

// dw and db (null: none) become, or grow by, the sums of the parts.
struct SumPartsArgs {
  const void* partial;
  void *dw, *db;
  Index parts, n;
  int add_w, add_b;
};

// Rows of heads vectors of q, then kv_heads of k, then v_heads of v (0: they stay where they are): q and k
// turn by the angles of their position (row % seq; cos and sin are [seq, head_dim / 2]; null: nothing turns),
// v is copied. Strides are in elements, from row to row. sign -1 turns back.
struct RopeArgs {
  const void *q, *k, *v, *cos, *sin;
  void* out;
  Index q_stride, k_stride, v_stride, out_stride;
  Index rows, seq;
  int heads, kv_heads, v_heads, head_dim;
  double sign;
};

// Bounds of a list of tensors, which travels in a launch's arguments (4 KiB at most).
constexpr int kMostTensors = 64;

// A tensor of an AdamW update: its parameters and their moments, of one type; the gradient of the stored type, or fp32;
// a copy of the parameters in the stored type (null: none). `first` counts the chunks of the tensors before it.
struct AdamwTensor {
  void* parameter;
  const void* grad;
  void *mean, *square, *copy;
  Index n, first;
};

// AdamW of a list, `chunk` numbers of a tensor at a time, with `coefficient` times the gradients.
// parameter = decay x parameter - step_size x mean / (root x sqrt(square) + eps).
struct AdamwArgs {
  AdamwTensor of[kMostTensors];
  Index chunk, chunks;
  int tensors, wide_grads;
  double beta1, beta2, coefficient, decay, step_size, root, eps;
};

// AdamW of n parameters. With codes mean and square are the largest magnitude of each block of kEightBitBlock
// numbers, without them (null) the moments themselves; all fp32. maps: what the codes of means and of squares stand
// for, [2, 256]. parameter = decay x parameter - step_size x mean / (root x sqrt(square) + eps).
struct EightBitArgs {
  void* parameter;
  const void* grad;
  void *mean, *square, *mean_codes, *square_codes;
  const void* maps;
  Index n;
  double beta1, beta2, decay, step_size, root, eps;
};

// Weights of a quantized tensor's run of blocks (kernels/nf4.h):
// out = map4[code] * (map8[scale code] * scale + offset). maps: map8 and map4, what codes of 8 and of 4 bits stand for,
// [256 + 16] of fp32; scales and offset are fp32, codes bytes.
struct Nf4Args {
  const void *codes, *scale_codes, *scales, *offset, *maps;
  void* out;
  Index rows, blocks, part, part_stride, whole, whole_stride;
};

// largest (fp32) becomes the largest magnitude of each block's rows of n elements, which begin `stride` apart.
struct LargestArgs {
  const void* in;
  void* largest;
  Index rows, n, stride;
};

// The same rows in eight bits, e5m2 (wide) or e4m3, as they lie or transposed: out * scale is close to in. The scale
// (fp32) follows from the largest of the parts' magnitudes.
struct RoundArgs {
  const void *in, *largest;
  void *out, *scale;
  Index rows, n, stride, parts;
  int wide, transposed;
};

// Each token has [experts] of probabilities and logits, [choices] of chosen experts (64-bit), weights and their gradients;
// all but logits and dlogits in the accumulation type. Forward: probs, and weights (null: not wanted), from the logits.
// Backward: dlogits from dweights and dprobs [experts], the same for every token (null: none).
struct RouterArgs {
  const void *logits, *chosen, *dweights, *dprobs;
  void *probs, *weights, *dlogits;
  Index tokens, experts, choices;
  double scale;
  int sigmoid, normalized;
};

// rows of n elements in sending order; places (64-bit) of each token's choices in it, negative: not served. Forward: to
// is the weighted sum (weights null: the sum) and base (null: nothing). Backward: base is the gradient of that sum, the
// rows become theirs, to the weights'.
struct CombineArgs {
  const void *places, *weights, *base;
  void *rows, *to;
  Index tokens, choices, n;
};

// Rows of n elements by group, one group's after another's; ends (32-bit) says where each group's rows end. Forward: a
// group's bias of n is added to its rows. Backward: the bias becomes, or grows by, the sum of its rows.
struct GroupBiasArgs {
  const void* ends;
  void *rows, *bias;
  Index count, n, groups;
  int add;
};

// Rows of heads vectors of head_dim; lse (accumulation type) of row r, whose sequences have seq rows, and of a head is at
// r / seq * of_sequence + r % seq * of_row + head * of_head. sinks: [heads]. Forward: exp(lse) grows by exp(sink), and
// out shrinks by as much. Backward: each block's sums of -exp(sink - lse) * (dout . out) are its row of partial [heads].
struct SinksArgs {
  const void *sinks, *dout;
  void *out, *lse, *partial;
  Index rows, seq, of_sequence, of_row, of_head;
  int heads, head_dim;
};

// Rows of n logits, `stride` elements apart, whose first entry is `first` of the vocabulary; labels (64-bit) [rows], of
// which negative ones have no loss. Forward: lse, and where it is wanted the label's logit (picked, 0 where another share
// has it), [rows] in the accumulation type. Backward: the logits become (softmax - one at the label) * scale. total: fp64.
struct CrossEntropyArgs {
  void* logits;
  const void* labels;
  void *lse, *picked, *total;
  Index rows, n, stride, first;
  double scale;
  int forward, backward;
};

// Bounds that host and kernels share.
constexpr int kEightBitBlock = 256, kEightBitValues = 256;
constexpr int kNf4Block = 64, kNf4ScaleBlock = 256, kNf4Values = 16;
constexpr int kWarp = 32;
constexpr int kMostThreads = 512;                // threads of a block
constexpr int kMostParts = 256;                  // blocks of a norm's backward
constexpr int kSharedBytes = 48 << 10;           // bytes that a block gets without asking for more
constexpr int kSumColumns = 32, kSumGroups = 8;  // a block that sums parts: columns, threads for each
constexpr int kTile = 64;                        // rows and columns that are transposed at once
constexpr float kLargestE4m3 = 448, kLargestE5m2 = 57344;  // largest values of the formats
constexpr float kLeastLargest = 1e-30F;  // stands for the largest value of a tensor of zeros

}  // namespace sweep::device
