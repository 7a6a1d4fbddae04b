// Assumptions: the simulated cluster: its size, its queue, and how often each part fails. Each default
// names where it was read; an unpublished figure is a round number: set it where you know better.
#pragma once
#include <cstdint>
#include <optional>

#include "schema/strategy.h"
#include "schema/trial.h"

namespace sweep::simulate {

struct Assumptions {
  Strategy strategy;            // the strategy that chooses trials
  i64 nodes = 512;              // nodes that the sweep may hold at once
  i64 spares = 10;              // further nodes, which stand in for broken ones
  i64 jobs = 16;                // allocations at once
  i64 job_nodes = 64;           // nodes of one allocation, unless a trial needs more
  double spread_s = 10;         // predicted work worth a further node while nodes stand idle
  std::optional<double> job_s;  // the longest an allocation may last
  // The grid's limit of what is held; usd: where it comes from one in USD.
  std::optional<double> gpu_hours, usd;
  double queue_s = 300;  // mean wait for an allocation (exponential), before nodes are looked for
  double agents_s = 10;  // seconds from an allocation's begin until its agents are ready
  // 419 unexpected interruptions of 2,048 nodes in 54 days (Llama Team 2024, "The Llama 3 Herd of Models",
  // 3.3.4).
  double node_mtbf_h = 6336;
  double repair_h = 4;            // a broken node is away so long
  double preempted_per_h = 0.01;  // preemptions of each allocation
  // The numbers of attempts in a hundred that end so (drawn anew for each attempt).
  double oom_percent = 3, crash_percent = 1, hang_percent = 0.2;
  double spread = 0.3;  // standard deviation of the logarithm of real over predicted time
  i64 retries_crash = 1, retries_infra = 3;
  std::uint64_t seed = 1;
};

}  // namespace sweep::simulate
