// Reductions of small payloads, so that losses, norms and seeds agree between ranks.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/phantom/nccl_comm.h"

namespace sweep::phantom {
namespace {

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

double read(Half h) {
  const int exponent = h.bits >> 10 & 31;
  const double fraction = (h.bits & 1023) / 1024.0, sign = (h.bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15));
}

double read(Brain b) {
  const std::uint32_t wide = static_cast<std::uint32_t>(b.bits) << 16;
  float out = 0;
  std::memcpy(&out, &wide, sizeof out);
  return static_cast<double>(out);
}

template <class T>
T read(T value) {
  return value;
}

void write(Half& h, double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double size = std::fabs(value);
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // 0.5 <= fraction < 1
  if (std::isnan(value)) {
    h.bits = 0x7e00;
  } else if (size >= 65520) {
    h.bits = static_cast<std::uint16_t>(sign | 0x7c00);
  } else if (exponent < -13) {
    h.bits = static_cast<std::uint16_t>(sign + std::lrint(std::ldexp(size, 24)));
  } else {
    h.bits = static_cast<std::uint16_t>(sign + ((exponent + 13) << 10) + std::lrint(fraction * 2048));
  }
}

void write(Brain& b, double value) {
  const auto narrow = static_cast<float>(value);
  std::uint32_t wide = 0;
  std::memcpy(&wide, &narrow, sizeof wide);
  wide += 0x7fff + (wide >> 16 & 1);  // rounds to nearest, ties to even
  b.bits = static_cast<std::uint16_t>(wide >> 16);
}

template <class T, class Sum>
void write(T& into, Sum value) {
  into = static_cast<T>(value);
}

template <class T, class Sum>
void reduce_as(int op, double scalar, const std::vector<const std::byte*>& sources, std::size_t skip,
               std::size_t count, void* out) {
  for (std::size_t i = 0; i < count; ++i) {
    Sum sum{};
    for (std::size_t r = 0; r < sources.size(); ++r) {
      T raw;
      std::memcpy(&raw, sources[r] + (skip + i) * sizeof(T), sizeof raw);
      const auto value = static_cast<Sum>(read(raw));
      if (r == 0)
        sum = value;
      else
        sum = op == ncclProd  ? sum * value
              : op == ncclMax ? std::max(sum, value)
              : op == ncclMin ? std::min(sum, value)
                              : sum + value;
    }
    if (op == ncclAvg) sum = sum / static_cast<Sum>(sources.size());
    if (op >= ncclNumOps) sum = static_cast<Sum>(static_cast<double>(sum) * scalar);
    T raw{};
    write(raw, sum);
    std::memcpy(static_cast<std::byte*>(out) + i * sizeof(T), &raw, sizeof raw);
  }
}

}  // namespace

void reduce(const Operation& operation, double scalar, const std::vector<const std::byte*>& sources,
            std::size_t skip, std::size_t count, void* out) {
  const int op = operation.op;
  switch (operation.type) {
    case ncclInt8:
      return reduce_as<std::int8_t, std::int64_t>(op, scalar, sources, skip, count, out);
    case ncclUint8:
      return reduce_as<std::uint8_t, std::uint64_t>(op, scalar, sources, skip, count, out);
    case ncclInt32:
      return reduce_as<std::int32_t, std::int64_t>(op, scalar, sources, skip, count, out);
    case ncclUint32:
      return reduce_as<std::uint32_t, std::uint64_t>(op, scalar, sources, skip, count, out);
    case ncclInt64:
      return reduce_as<std::int64_t, std::int64_t>(op, scalar, sources, skip, count, out);
    case ncclUint64:
      return reduce_as<std::uint64_t, std::uint64_t>(op, scalar, sources, skip, count, out);
    case ncclFloat16:
      return reduce_as<Half, double>(op, scalar, sources, skip, count, out);
    case ncclBfloat16:
      return reduce_as<Brain, double>(op, scalar, sources, skip, count, out);
    case ncclFloat32:
      return reduce_as<float, double>(op, scalar, sources, skip, count, out);
    case ncclFloat64:
      return reduce_as<double, double>(op, scalar, sources, skip, count, out);
    default:
      std::memcpy(out, sources[0] + skip, count);  // 8-bit floats: the first rank's
  }
}

double number_of(int type, const void* element) {
  switch (type) {
    case ncclFloat16: {
      Half half;
      std::memcpy(&half, element, sizeof half);
      return read(half);
    }
    case ncclBfloat16: {
      Brain brain;
      std::memcpy(&brain, element, sizeof brain);
      return read(brain);
    }
    case ncclFloat64: {
      double out = 0;
      std::memcpy(&out, element, sizeof out);
      return out;
    }
    default: {
      float out = 0;
      std::memcpy(&out, element, sizeof out);
      return static_cast<double>(out);
    }
  }
}

}  // namespace sweep::phantom
