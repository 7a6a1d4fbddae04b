// Tensor-parallel layers: how rows travel between the residual stream and a rank's share of a linear layer. A
// column-parallel layer holds a share of its outputs and reads whole rows; a row-parallel layer holds a share
// of its inputs and its results are summed over the group (Shoeybi et al. 2019, arXiv 1909.08053). Under
// sequence parallelism the residual stream holds a share of the rows: they are gathered before, and summed
// and scattered after; what was gathered is not kept but gathered again in backward (Korthikanti et al. 2022,
// arXiv 2205.05198, section 4.2.2). With overlap both go in pieces beside the products. One rank alone: the
// products and nothing else.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "bench_kernels/model/layers.h"

namespace sweep::model {

// Selects from the rows of all ranks those that a block like `like` stands for: as many rows from `begin` on; for blocks
// [ranks, rows, width] as many from `begin` on of each rank.
at::Tensor rows_at(const at::Tensor& rows, std::int64_t begin, const at::Tensor& like);

// All rows of a micro-batch, from this rank's rows of the residual stream; on their way from the constructor
// on. REQUIRES: each() is called before it goes.
class WholeRows {
 public:
  WholeRows(const Layout&, const at::Tensor& local, bool in_pieces = true);
  // f(rows, begin) for blocks that together are all rows; rows_at() finds where a block stands in others. May be called
  // again.
  template <class F>
  void each(F&& f) {
    for (Piece& piece : pieces_) {
      piece.pending.wait();
      for (const auto& [rows, begin] : piece.blocks) f(rows, begin);
    }
  }

 private:
  struct Piece {
    comm::Pending pending;
    std::vector<std::pair<at::Tensor, std::int64_t>> blocks;
  };
  std::vector<Piece> pieces_;
};

// compute(begin, to) writes this rank's part of the rows that `to` stands for (rows_at) into it; out becomes their
// sum over the group: all rows, or under sequence parallelism this rank's.
using PartialRows = std::function<void(std::int64_t begin, const at::Tensor& to)>;
void sum_rows(const Layout&, const at::Tensor& out, const PartialRows& compute, bool in_pieces = true);

// All rows of which the residual stream holds `rows`.
at::Tensor all_rows(const Layout&, const at::Tensor& rows);
// The sum over the tensor group of all rows, of which this rank keeps what it holds of the residual stream, as `like`.
at::Tensor sum_all_rows(const Layout&, const at::Tensor& all, const at::Tensor& like);

// The result of the first matrix of a layer's adapters for all rows (A x, lora_rank columns: the "low rows"), and its
// gradient; undefined without adapters.
struct LowRows {
  at::Tensor value, gradient;
};

// out [whole rows, this rank's outputs] = whole rows of h @ weight + bias + adapters. Returns the low rows.
at::Tensor column_forward(const StageContext&, const Linear&, const at::Tensor& h, const at::Tensor& out);
// dout as out above, h this rank's rows of the input: the gradient of h, in h itself unless the weights' part
// is still to come.
at::Tensor column_backward(const StageContext&, const Linear&, const at::Tensor& dout, const at::Tensor& h,
                           const at::Tensor& low = {});
// out [this rank's rows] = in [whole rows, this rank's inputs] @ weight + bias + residual + adapters. Returns
// the low rows.
at::Tensor row_forward(const StageContext&, const Linear&, const at::Tensor& in, const at::Tensor& residual,
                       const at::Tensor& out);
// The place where the norm before a row-parallel product writes what the product starts from, x + bias in the product's
// result, which is then given as its residual too. Undefined: the norm cannot, or nothing starts here.
kernels::Start row_start(const StageContext&, const Linear&, const at::Tensor& x);
// Returns the gradient of the low rows.
at::Tensor row_backward_input(const StageContext&, const Linear&, WholeRows& grad, const at::Tensor& din);
void row_backward_weight(const StageContext&, const Linear&, std::shared_ptr<WholeRows> grad,
                         const at::Tensor& in, const LowRows& = {});

// A product of rows that every rank of the group has whole, with its adapters: nothing is sent. As column_forward, and of
// backward the gradient of the low rows, that of the input (in the place of `din`, or added to it), and of what is trained.
at::Tensor whole_forward(const StageContext&, const Linear&, const at::Tensor& rows, const at::Tensor& out);
at::Tensor low_gradient(const StageContext&, const Linear&, const at::Tensor& dout);
void whole_backward_input(const StageContext&, const Linear&, const at::Tensor& dout, const at::Tensor& dlow,
                          const at::Tensor& din, bool add = false);
void whole_backward_weight(const StageContext&, const Linear&, const at::Tensor& dout, const at::Tensor& rows,
                           const LowRows&);

}  // namespace sweep::model
