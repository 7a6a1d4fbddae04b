// Every fused kernel of a device on the CPU against double arithmetic: all stored types, odd sizes, aligned or
// not, each block that is launched. A plain program, so that the sanitizers see nothing but the kernels; it
// says which comparison failed and ends with 1.
#include "tests/device/adamw_cases.h"
#include "tests/device/cases.h"
#include "tests/device/expert_cases.h"
#include "tests/device/fp8_cases.h"
#include "tests/device/loss_cases.h"
#include "tests/device/sinks_cases.h"

namespace {

using namespace device_test;

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double silu(double x) {
  return x / (1 + std::exp(-x));
}

// The slope by a central difference of the function in long double would lose digits: by the formula instead.
double gelu_slope(double x) {
  const double c = std::sqrt(2 / M_PI), t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}
double exact(double x) {
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}
double exact_slope(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}
double silu_slope(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return s * (1 + x * (1 - s));
}

// gpt-oss: both halves at most 7, the other one at least -7, and taken plus 1.
double clamped(double x) {
  const double g = std::min(x, 7.0);
  return g / (1 + std::exp(-1.702 * g));
}
double clamped_slope(double x) {
  if (x > 7) return 0;
  const double s = 1 / (1 + std::exp(-1.702 * x));
  return s * (1 + 1.702 * x * (1 - s));
}

template <class T>
void activations(const Case& c) {
  struct Kind {
    const char *forward, *backward;
    bool gated;
    double (*value)(double);
    double (*slope)(double);
    bool clamps = false;
    double beside(double up) const { return clamps ? std::clamp(up, -7.0, 7.0) + 1 : up; }
  };
  for (const Kind& kind :
       {Kind{"swiglu", "swiglu_backward", true, silu, silu_slope},
        Kind{"geglu", "geglu_backward", true, gelu, gelu_slope},
        Kind{"gelu", "gelu_backward", false, gelu, gelu_slope},
        Kind{"gelu_exact", "gelu_exact_backward", false, exact, exact_slope},
        Kind{"relu", "relu_backward", false, [](double x) { return std::max(x, 0.0); },
             [](double x) { return x > 0 ? 1.0 : 0.0; }},
        Kind{"clamped_swiglu", "clamped_swiglu_backward", true, clamped, clamped_slope, true}}) {
    if (kind.gated && c.packed && c.n % (16 / static_cast<Index>(sizeof(T))) != 0)
      continue;  // the second half would be misaligned
    const Index width = kind.gated ? 2 * c.n : c.n;
    const Array<T> in(c.rows * width, c.shift, 1), out(c.rows * c.n, c.shift, 2),
        grad(c.rows * c.n, c.shift, 3);
    std::vector<double> want(static_cast<std::size_t>(c.rows * c.n)),
        din(static_cast<std::size_t>(c.rows * width));
    for (Index r = 0; r < c.rows; ++r) {
      for (Index i = 0; i < c.n; ++i) {
        const double x = in[r * width + i], other = kind.gated ? in[r * width + c.n + i] : 1,
                     up = kind.beside(other), d = grad[r * c.n + i];
        want[static_cast<std::size_t>(r * c.n + i)] = kind.value(x) * up;
        din[static_cast<std::size_t>(r * width + i)] = kind.slope(x) * up * d;
        if (kind.gated)
          din[static_cast<std::size_t>(r * width + c.n + i)] =
              std::abs(other) > 7 && kind.clamps ? 0 : kind.value(x) * d;
      }
    }
    const ActivationArgs forward{in.at(), out.at(), c.rows, c.n}, backward{in.at(), grad.at(), c.rows, c.n};
    const Shape shape{c.blocks, c.threads, 0};
    host_kernels::run<T>(kind.forward, c.packed, shape, &forward);
    expect_near(said<T>(kind.forward, c), out, want, tolerance<T>());
    host_kernels::run<T>(kind.backward, c.packed, shape, &backward);
    expect_near(said<T>(kind.backward, c) + " input", in, din, tolerance<T>());
    expect_near(said<T>(kind.backward, c) + " output", grad, want, tolerance<T>());
  }
}

// A norm in double: y, then dx, dw, db for dy.
struct Reference {
  std::vector<double> y, dx, dw, db;
  Reference(const Case& c, bool layer, double eps, double added, const auto& x, const auto& w, const auto& b,
            const auto& dy, const std::vector<double>& residual)
      : y(static_cast<std::size_t>(c.rows * c.n)),
        dx(y.size()),
        dw(static_cast<std::size_t>(c.n)),
        db(dw.size()) {
    const double n = static_cast<double>(c.n);
    for (Index r = 0; r < c.rows; ++r) {
      const auto at = [&](Index i) { return r * c.n + i; };
      double mean = 0, square = 0, dot = 0, sum = 0;
      for (Index i = 0; i < c.n && layer; ++i) mean += x[at(i)] / n;
      for (Index i = 0; i < c.n; ++i) square += (x[at(i)] - mean) * (x[at(i)] - mean) / n;
      const double rstd = 1 / std::sqrt(square + eps);
      for (Index i = 0; i < c.n; ++i) {
        const double hat = (x[at(i)] - mean) * rstd, g = dy[at(i)] * (w[i] + added);
        y[static_cast<std::size_t>(at(i))] = hat * (w[i] + added) + (layer ? b[i] : 0);
        dot += g * hat / n, sum += layer ? g / n : 0;
        dw[static_cast<std::size_t>(i)] += dy[at(i)] * hat, db[static_cast<std::size_t>(i)] += dy[at(i)];
      }
      for (Index i = 0; i < c.n; ++i) {
        const double hat = (x[at(i)] - mean) * rstd;
        dx[static_cast<std::size_t>(at(i))] =
            rstd * (dy[at(i)] * (w[i] + added) - hat * dot - sum) +
            (residual.empty() ? 0 : residual[static_cast<std::size_t>(at(i))]);
      }
    }
  }
};

std::vector<double> plus(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

template <class T>
void norms(const Case& c, bool layer, bool in_shared) {
  using A = Wide<T>;
  constexpr double kEps = 1e-5;
  const Index all = c.rows * c.n, width = layer ? 2 * c.n : c.n;
  const Array<T> x(all, c.shift, 1), w(c.n, c.shift, 2), b(c.n, c.shift, 3), y(all, c.shift, 4),
      dy(all, c.shift, 5), residual(all, c.shift, 6);
  const Array<T> bias(c.n, c.shift, 7), start(all, c.shift, 8), dw(c.n, c.shift, 9), db(c.n, c.shift, 10);
  const Array<A> mean(c.rows, 0, 11), rstd(c.rows, 0, 12), partial(c.blocks * width, 0, 13);
  const std::size_t room = sizeof(A) * kWarp;
  const float added = !layer && in_shared ? 1 : 0;  // to the weights
  const Reference want(c, layer, kEps, added, x, w, b, dy,
                       in_shared ? residual.wide() : std::vector<double>());
  const NormArgs forward{x.at(),
                         w.at(),
                         layer ? b.at() : nullptr,
                         y.at(),
                         layer ? mean.at() : nullptr,
                         rstd.at(),
                         bias.at(),
                         start.at(),
                         c.rows,
                         c.n,
                         kEps,
                         added};
  const char* name = layer ? "layer_norm" : "rms_norm";
  host_kernels::run<T>(name, c.packed, {c.blocks, c.threads, room}, &forward);
  expect_near(said<T>(name, c), y, want.y, tolerance<T>());
  std::vector<double> sums = x.wide();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += bias[static_cast<Index>(i) % c.n];
  expect_near(said<T>(name, c) + " start", start, sums, tolerance<T>());
  // In place of dy, as the step does; one of the weights' gradients grows, the other is new.
  const NormBackwardArgs backward{
      dy.at(), x.at(),       w.at(), mean.at(), rstd.at(), in_shared ? residual.at() : nullptr,
      dy.at(), partial.at(), c.rows, c.n,       added,     in_shared ? 1 : 0};
  const auto grown = plus(want.dw, dw.wide());
  const std::string back = std::string(name) + "_backward";
  host_kernels::run<T>(
      back, c.packed,
      {c.blocks, c.threads, room + (in_shared ? sizeof(A) * static_cast<std::size_t>(width) : 0)}, &backward);
  const SumPartsArgs parts{partial.at(), dw.at(), layer ? db.at() : nullptr, c.blocks, c.n, 1, 0};
  host_kernels::run<T>("sum_parts", c.packed,
                       {static_cast<unsigned>((width + kSumColumns - 1) / kSumColumns),
                        kSumColumns * kSumGroups, sizeof(A) * kSumColumns * kSumGroups},
                       &parts);
  expect_near(said<T>(back.c_str(), c) + " dx", dy, want.dx, tolerance<T>());
  expect_near(said<T>(back.c_str(), c) + " dw", dw, grown, tolerance<T>());
  if (layer) expect_near(said<T>(back.c_str(), c) + " db", db, want.db, tolerance<T>());
}

struct Heads {
  int heads, kv_heads, head_dim;
};

// Forward in place on q and k; backward from three arrays with room between their rows to one.
template <class T>
void ropes(const Case& c, const Heads& h) {
  using A = Wide<T>;
  const Index seq = 3, half = h.head_dim / 2, q = h.heads * h.head_dim, kv = h.kv_heads * h.head_dim,
              gap = h.head_dim;
  const Array<A> cosines(seq * half, c.packed ? 0 : c.shift, 1), sines(seq * half, c.packed ? 0 : c.shift, 2);
  const Array<T> rows(c.rows * (q + 2 * kv), c.shift, 3);
  const auto turned = [&](const auto& from, double sign, Index r, Index i) {
    const Index lane = i % h.head_dim, angle = r % seq * half + lane % half;
    const double other = from(lane < half ? i + half : i - half) * sines[angle] * sign;
    return from(i) * cosines[angle] + (lane < half ? -other : other);
  };
  std::vector<double> want = rows.wide();
  for (Index r = 0; r < c.rows; ++r)
    for (Index i = 0; i < q + kv; ++i)
      want[static_cast<std::size_t>(r * (q + 2 * kv) + i)] =
          turned([&](Index at) { return rows[r * (q + 2 * kv) + at]; }, 1, r, i);
  const Index stride = q + 2 * kv;
  const RopeArgs forward{rows.at(), rows.at() + q, nullptr, cosines.at(), sines.at(), rows.at(),
                         stride,    stride,        0,       stride,       c.rows,     seq,
                         h.heads,   h.kv_heads,    0,       h.head_dim,   1};
  host_kernels::run<T>("rope", c.packed, {c.blocks, c.threads, 0}, &forward);
  expect_near(said<T>("rope", c), rows, want, tolerance<T>());

  const Array<T> dq(c.rows * (q + gap), c.shift, 4), dk(c.rows * (kv + gap), c.shift, 5),
      dv(c.rows * (kv + gap), c.shift, 6);
  const Array<T> out(c.rows * stride, c.shift, 7);
  for (const bool turns : {true, false}) {
    std::vector<double> joined;
    for (Index r = 0; r < c.rows; ++r) {
      const auto part = [&](const Array<T>& from, Index width, bool turn) {
        const auto get = [&](Index at) { return from[r * (width + gap) + at]; };
        for (Index i = 0; i < width; ++i) joined.push_back(turn ? turned(get, -1, r, i) : get(i));
      };
      part(dq, q, turns), part(dk, kv, turns), part(dv, kv, false);
    }
    const RopeArgs backward{dq.at(),    dk.at(),    dv.at(),    turns ? cosines.at() : nullptr,
                            sines.at(), out.at(),   q + gap,    kv + gap,
                            kv + gap,   stride,     c.rows,     seq,
                            h.heads,    h.kv_heads, h.kv_heads, h.head_dim,
                            -1};
    host_kernels::run<T>("rope", c.packed, {c.blocks, c.threads, 0}, &backward);
    expect_near(said<T>("rope back", c), out, joined, tolerance<T>());
  }
}

// Two updates of numbers whose last block is not full; each is expected from what the one before left, so that a code
// between two others may be either.
template <class T>
void eight_bits(Index n, unsigned blocks, bool coded) {
  using A = Wide<T>;
  const Case c{1, n, blocks, kEightBitBlock, false, 1};
  const Index scales = coded ? (n + kEightBitBlock - 1) / kEightBitBlock : n;
  const Array<T> parameter(n, 1, 1), grad(n, 1, 2);
  const Array<float> mean(scales, 0, 3, 0), square(scales, 0, 4, 0), maps(2 * kEightBitValues, 0, 5);
  std::vector<unsigned char> codes(static_cast<std::size_t>(2 * n));
  unsigned char *mean_codes = coded ? codes.data() : nullptr,
                *square_codes = coded ? mean_codes + n : nullptr;
  for (int i = 0; i < kEightBitValues; ++i)  // ascending, as nothing else matters here
    maps.at()[i] = static_cast<float>(2 * i - 255) / 255,
    maps.at()[kEightBitValues + i] = static_cast<float>(i) / 255;
  const auto moment = [&](const Array<float>& numbers, const unsigned char* of, int map, Index i) {
    return coded ? maps[map + of[i]] * numbers[i / kEightBitBlock] : numbers[i];
  };
  const EightBitArgs args{
      parameter.at(), grad.at(), mean.at(), square.at(), mean_codes, square_codes, maps.at(), n, 0.9,
      0.99,           0.5,       0.25,      2,           0.125};
  for (int update = 0; update < 2; ++update) {
    std::vector<double> want, means, squares;
    for (Index i = 0; i < n; ++i) {
      const double g = grad[i], m = 0.9 * moment(mean, mean_codes, 0, i) + 0.1 * g;
      const double v = 0.99 * moment(square, square_codes, kEightBitValues, i) + 0.01 * g * g;
      want.push_back(0.5 * parameter[i] - 0.25 * m / (2 * std::sqrt(v) + 0.125));
      means.push_back(m), squares.push_back(v);
    }
    host_kernels::run<T>("adamw_eight_bit", false,
                         {blocks, kEightBitBlock, sizeof(A) * (kWarp + 2 * kEightBitValues)}, &args);
    expect_near(said<T>("adamw_eight_bit", c), parameter, want, tolerance<T>());
    std::vector<double> got_means, got_squares;
    for (Index i = 0; i < n; ++i) {  // half the distance of two codes of these maps
      const double room = coded ? 1.0 : 1e-5;
      const auto near = [&](double got, double expected, double half) {
        if (std::fabs(got - expected) <= room * half + 1e-6) return expected;
        return got;
      };
      got_means.push_back(near(moment(mean, mean_codes, 0, i), means[static_cast<std::size_t>(i)],
                               coded ? mean[i / kEightBitBlock] / 255 : 1));
      got_squares.push_back(near(moment(square, square_codes, kEightBitValues, i),
                                 squares[static_cast<std::size_t>(i)],
                                 coded ? square[i / kEightBitBlock] / 510 : 1));
    }
    expect_near(said<T>("adamw_eight_bit mean", c), Read{got_means}, means, 1e-9);
    expect_near(said<T>("adamw_eight_bit square", c), Read{got_squares}, squares, 1e-9);
  }
}

// Blocks 2 to 2 + columns of each row of `stride` blocks, of a whole tensor whose rows have 300 more.
template <class T>
void quantized(Index rows, Index columns, unsigned blocks, unsigned threads, int shift) {
  const Index stride = columns + 2, held = rows * stride, whole = stride + 300,
              scales = rows * whole / kNf4ScaleBlock + 1;
  const Array<float> scale(scales, 0, 1), offset(1, 0, 2), maps(kEightBitValues + kNf4Values, 0, 3);
  std::vector<unsigned char> codes(static_cast<std::size_t>(held * kNf4Block / 2)),
      largest(static_cast<std::size_t>(held));
  std::mt19937 random(4);
  for (auto* each : {&codes, &largest})
    for (unsigned char& code : *each) code = static_cast<unsigned char>(random() & 255);
  const Array<T> out(held * kNf4Block, shift, 5, 0);
  std::vector<double> want(static_cast<std::size_t>(held * kNf4Block), 0.0);
  for (Index r = 0; r < rows; ++r)
    for (Index i = 0; i < columns * kNf4Block; ++i) {
      const Index block = r * stride + 2 + i / kNf4Block, at = block * kNf4Block + i % kNf4Block;
      const int byte = codes[static_cast<std::size_t>(at / 2)], code = at % 2 == 0 ? byte >> 4 : byte & 15;
      const double scaled = maps[largest[static_cast<std::size_t>(block)]] *
                            scale[(7 + r * whole + i / kNf4Block) / kNf4ScaleBlock];
      want[static_cast<std::size_t>(at)] = maps[kEightBitValues + code] * (scaled + offset[0]);
    }
  const Nf4Args args{codes.data(), largest.data(), scale.at(), offset.at(), maps.at(), out.at(),
                     rows,         columns,        2,          stride,      7,         whole};
  host_kernels::run<T>("four_bit_weights", shift == 0,
                       {blocks, threads, sizeof(float) * (kEightBitValues + kNf4Values)}, &args);
  expect_near(said<T>("four_bit_weights", {rows, columns, blocks, threads, shift == 0, shift}), out, want,
              std::max(tolerance<T>(), tolerance<float>()));
}

// Rows fewer and more than blocks, whole packs and a tail of each length.
template <class T>
void kernels_of(unsigned threads) {
  constexpr Index kPack = 16 / sizeof(T);
  const Index reach = threads * kPack;  // columns that the block moves at once
  activations<T>({3, 2 * kPack, 2, threads, true, 0});
  activations<T>({2, reach + kPack, 1, threads, true, 0});
  activations<T>({1, reach + kPack + 1, 1, threads, true, 0});
  activations<T>({3, 67, 2, threads, false, 1});
  for (const bool layer : {false, true}) {
    norms<T>({1, reach + 3, 1, threads, true, 0}, layer, true);
    norms<T>({4, 3 * kPack, 3, threads, true, 0}, layer, false);
    norms<T>({3, 71, 2, threads, false, 1}, layer, layer);
  }
  ropes<T>({5, 0, 2, threads, true, 0}, {3, 1, static_cast<int>(4 * kPack)});
  ropes<T>({4, 0, 3, threads, false, 1}, {2, 2, 6});
  combines<T>({3, reach + kPack, 2, threads, true, 0}, 2);
  combines<T>({5, 67, 3, threads, false, 1}, 3);
  group_biases<T>({9, reach + kPack, 2, threads, true, 0});
  group_biases<T>({21, 67, 3, threads, false, 1});
  sinks<T>({3, 0, 2, threads, true, 0}, 3, static_cast<int>(reach / 2), true);
  sinks<T>({5, 0, 3, threads, false, 1}, 7, 23, false);
  losses<T>({5, reach + 3, 2, threads, true, 0}, kPack, 2 * kPack - 3);
  losses<T>({4, 71, 3, threads, false, 1}, 30, 2);
  for (const bool wide : {false, true}) {
    fp8<T>({3, reach + kPack, 2, threads, true, 0}, wide, false);
    fp8<T>({5, 67, 3, threads, false, 1}, wide, false);
  }
}

template <class T>
void kernels_of_one_size() {
  for (const bool wide : {false, true}) {
    fp8<T>({2 * kTile, 2 * kTile, 4, 64, true, 0}, wide, true);
    fp8<T>({kTile + 7, 2 * kTile + 3, 3, 64, false, 1}, wide, true);
  }
  for (const bool sigmoid : {false, true}) {
    routers<T>({19, 0, 1, 256, false, 1}, {8, 2, sigmoid, true, true});
    routers<T>({5, 0, 2, 64, false, 0}, {45, 3, sigmoid, false, false});
    routers<T>({3, 0, 3, 64, false, 0}, {64, 40, sigmoid, true, false});
  }
  eight_bits<T>(3 * kEightBitBlock + 17, 2, true);
  eight_bits<T>(kEightBitBlock + 3, 3, false);
  quantized<T>(3, 5, 2, 64, 0);
  quantized<T>(2, 9, 3, 64, 1);
  quantized<T>(3, 23, 2, 256, 0);  // as launched: more pieces of blocks than threads
  quantized<T>(2, 33, 2, 256, 1);
}

// Blocks as they are launched (device_ops.cpp). All types of a size before the next larger one: the thread sanitizer's
// clocks grow with the fibers, and never shrink.
template <class... T>
void kernels_of_types() {
  (kernels_of_one_size<T>(), ...);
  for (const unsigned threads : {64u, 128u, 256u, 512u}) (kernels_of<T>(threads), ...);
  (adamws<T>(), ...);
}

}  // namespace

// With SWEEP_TWO_TYPES: one of 4 bytes and one of 2, which have all ways to share, to wait and to move 16 bytes. The others differ by
// what the shim converts, and take the compiler as long again.
int main() {
#ifdef SWEEP_TWO_TYPES
  kernels_of_types<float, Bf16>();
#else
  kernels_of_types<float, Bf16, Fp16, double>();
#endif
  if (failures == 0) std::printf("every kernel agrees with double arithmetic\n");
  return failures == 0 ? 0 : 1;
}
