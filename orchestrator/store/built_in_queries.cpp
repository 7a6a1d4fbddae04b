#include "orchestrator/store/built_in_queries.h"

namespace sweep::store {
namespace {

constexpr BuiltInQuery kQueries[] = {
    {"outcomes", "how many trials ended how, by sweep",
     R"(SELECT sweep, coalesce(outcome, 'not run yet') AS outcome, count(*) AS trials
FROM results
GROUP BY 1, 2
ORDER BY 1, 3 DESC)"},
    {"best", "the fastest configuration of each model and node count",
     R"(SELECT sweep, model, nodes, tokens_per_s_gpu, useful AS useful_tokens_per_s_gpu, mfu, dp, tp, pp, cp, zero,
       micro_batch_size, grad_accum, trial
FROM (SELECT *, row_number() OVER (PARTITION BY sweep, model, nodes ORDER BY useful DESC, trial) AS place
      FROM (SELECT *, coalesce(useful_tokens_per_s_gpu, tokens_per_s_gpu * coalesce(useful_fraction, 1)) AS useful
            FROM results WHERE outcome = 'ok' AND steps_saved IS NULL)
      WHERE useful IS NOT NULL)
WHERE place = 1
ORDER BY 1, 2, 3)"},
    {"reasons", "why trials did not end ok, the frequent reasons first",
     R"(SELECT sweep, outcome, reason, count(*) AS trials, min(trial) AS for_example
FROM results
WHERE outcome <> 'ok'
GROUP BY sweep, outcome, reason
ORDER BY trials DESC)"},
    {"retries", "trials with cudaMalloc retries: memory was nearly full",
     R"(SELECT sweep, trial, model, micro_batch_size, alloc_retries, peak_allocated_bytes, peak_reserved_bytes, step_ms
FROM results
WHERE alloc_retries > 0
ORDER BY alloc_retries DESC)"},
    {"predictions", "predicted against measured memory and step time",
     R"(SELECT sweep, trial, predicted_bytes * 1.0 / peak_allocated_bytes AS bytes_ratio, predicted_ms / step_ms AS ms_ratio
FROM results
WHERE outcome = 'ok'
ORDER BY abs(ln(coalesce(bytes_ratio, 1))) DESC)"},
    {"noise", "trials whose step time varies most between steps",
     R"(SELECT sweep, trial, step_ms, step_ms_iqr / step_ms AS spread, timed_steps, throttle, sm_clock_mhz
FROM results
WHERE outcome = 'ok' AND step_ms_iqr IS NOT NULL
ORDER BY spread DESC)"},
    {"startup", "how long trials took before their first measured step",
     R"(SELECT sweep, world, count(*) AS trials, avg(startup_ms) AS mean_ms, max(startup_ms) AS worst_ms
FROM (SELECT sweep, dp * tp * pp * cp AS world, startup_ms FROM results WHERE startup_ms IS NOT NULL)
GROUP BY sweep, world
ORDER BY 1, 2)"},
    {"steps", "every timed step of one trial, slowest rank first (--set trial=ID)",
     R"(SELECT w.name AS sweep, t.id AS trial, s.attempt, s.repeat, s.step, s.rank, s.step_ns / 1e6 AS step_ms,
       NULLIF(s.forward_ns, 0) / 1e6 AS forward_ms, NULLIF(s.backward_ns, 0) / 1e6 AS backward_ms,
       NULLIF(s.optimizer_ns, 0) / 1e6 AS optimizer_ms, NULLIF(s.loss, 0) AS loss
FROM trial t
JOIN plan_entry p ON p.trial = t.key
JOIN sweep w ON w.id = p.sweep
JOIN step_sample s ON s.attempt = p.final_attempt
WHERE NOT s.warmup AND t.id LIKE :trial || '%'
ORDER BY 1, 2, s.repeat, s.step, s.step_ns DESC)"},
    {"machines", "the nodes results were measured on",
     R"(SELECT DISTINCT w.name AS sweep, e.host, e.facts ->> '$.gpus[0].name' AS gpu, e.facts ->> '$.driver' AS driver,
       e.facts ->> '$.nccl' AS nccl, e.facts ->> '$.build' AS build
FROM environment e
JOIN allocation a ON a.id = e.allocation
JOIN sweep w ON w.id = a.sweep
ORDER BY 1, 2)"},
};

}  // namespace

std::span<const BuiltInQuery> built_in_queries() {
  return kQueries;
}

}  // namespace sweep::store
