// Screening: measures an allocation's nodes before its first trial. It makes the attempt whose ranks measure
// (matmul, memory bandwidth, transport between nodes) and decides from their records which nodes stand out.
// Pure.
#pragma once
#include <map>
#include <vector>

#include "schema/attempt.h"
#include "schema/records.h"

namespace sweep::agent {

// No database gives this id: attempts count from 1.
inline constexpr i64 kScreenAttempt = i64{1} << 40;

// One rank for each GPU of a node, one where there is none.
Attempt screen_attempt(i64 nodes, i64 gpus_per_node, bool zygote);

// records: of the ranks, by rank; `nodes` in rank order; `facts`: of node_probe, by node (ECC errors, Xids).
// A node stands out below 70 % of the median node's matmul or memory bandwidth, below half of its transport,
// or with uncorrected memory errors or Xids. Nodes without an answer are absent.
std::map<i64, NodeScreen> judge_screen(const std::map<i64, RankRecord>& records,
                                       const std::vector<i64>& nodes, const std::map<i64, NodeFacts>& facts);

}  // namespace sweep::agent
