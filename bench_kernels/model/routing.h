// Routing: which experts the tokens of a rank go to, and how many rows that sends where. Learned routing asks
// the router's probabilities, and its peers; where rows travel or a capacity refuses some, the host waits for the counts,
// once a layer. Balanced and skewed
// routing follow from a token's position alone, so that load is a controlled variable: they are known before
// the first step (and on meta tensors), are made once and shared by all layers, and nothing is waited for.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "bench_kernels/kernels/grouped.h"
#include "bench_kernels/kernels/moe.h"
#include "bench_kernels/model/unit.h"

namespace sweep::model {

// Rows a rank sends and receives in one dispatch. An expert's owner is expert / (experts / ep).
struct Dispatch {
  std::vector<std::int64_t> chosen;                 // [experts]: choices of this rank's tokens
  std::vector<std::int64_t> kept;                   // [experts]: those of them that are served
  std::vector<std::vector<std::int64_t>> incoming;  // [ep][local experts]: rows from each peer
  std::vector<std::int64_t> wanted;                 // [local experts]: choices of all peers, served or not
  std::int64_t sent() const;
  std::int64_t received() const;
  std::vector<std::int64_t> send_splits(std::int64_t ep) const;  // rows to each peer
  std::vector<std::int64_t> receive_splits() const;              // rows from each peer
  std::int64_t rows_of(std::size_t local_expert) const;          // rows from all peers
  // New places of the received rows, so that each expert's are contiguous: int64 [received].
  std::vector<std::int64_t> expert_major() const;
};

// One layer's routing. Tensors on the device:
struct Route {
  Dispatch dispatch;       // empty where all rows stay here, learned and without a capacity
  at::Tensor experts;      // int64 [T, k]
  kernels::Choices sent;   // the served choices, sorted by expert, within an expert by token
  at::Tensor major;        // int64 [received]; undefined: rows arrive expert by expert already
  at::Tensor chosen;       // [experts]: choices of this rank's tokens, in the accumulation type
  kernels::Groups groups;  // received rows by local expert
};
using RoutePtr = std::shared_ptr<const Route>;

// int64 [tokens, k] of the forced routings, for tokens of `batch` sequences at these positions.
std::vector<std::int64_t> forced_experts(const ModelSpec&, const Options&,
                                         const std::vector<std::int64_t>& positions, std::int64_t batch);

// How the model's router scores and chooses.
kernels::Gate gate_of(const ModelSpec&);

// The routing of tokens with these probabilities [T, E]. The choice uses probabilities plus bias [E] (undefined: none).
// A collective of the expert channel when learned on a real device; learned on meta tensors counts as balanced.
RoutePtr route(const StageContext&, const at::Tensor& probs, const at::Tensor& bias = {});

// The forced routes of a stage, by number of tokens.
struct ForcedRoutes {
  std::map<std::int64_t, RoutePtr> by_tokens;
};

}  // namespace sweep::model
