// KernelTable: measured times of kernels of one kind of GPU (docs/phantom.md, "Kernel times"). A kernel that is
// not in it takes the time of the nearest shape, scaled by the model; one of a kind that is not, the model's.
// It holds no kernel below what the device's peaks allow. Pure, but for the warnings.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "worker/phantom/description.h"

namespace sweep::phantom {

// The source of a modelled time: the device's figures, the nearest measured shape, that very shape.
enum class Source { kModel, kScaled, kTable };
struct KernelTime {
  Ns lasts = 0;
  Source source = Source::kModel;
};

// A kernel's work in the words of a table: `mm` of the type bf16 with {m, n, k}, for example. The m and n of
// products may change places.
struct KernelWork {
  std::string op, type;
  std::vector<double> sizes;
};

class KernelTable {
 public:
  // The rows of `gpu` in a CSV with the columns operator, shape (sizes joined by x), type, gpu and us
  // (microseconds), in any order; without a cell in `gpu` a row is of every GPU. Of two equal rows the last
  // counts. Throws std::runtime_error with the line and what is wrong in it.
  static KernelTable read(const std::string& csv, const std::string& gpu);
  std::size_t size() const { return rows_.size(); }

  struct Cost {
    Ns modelled = 0, fastest = 0;  // times by the model, and by the device's peaks alone
  };
  using Model = std::function<Cost(const std::vector<double>& sizes)>;
  KernelTime time(KernelWork, const Model&) const;

 private:
  struct Row {
    KernelWork work;
    Ns lasts = 0;
  };
  struct Nearest {
    const Row* row = nullptr;
    double away = 0;  // doublings
  };
  Nearest nearest(const KernelWork&) const;
  std::vector<Row> rows_;
};

// The table that SWEEP_PHANTOM_KERNELS names; without it an empty one. A table that cannot be read ends the
// process (exit 2) with the reason on stderr.
const KernelTable& kernel_table();

}  // namespace sweep::phantom
