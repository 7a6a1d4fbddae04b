-- A database as the first release wrote it (version 1), with fewer axes and metrics than schema/fields.def has now.
PRAGMA application_id = 1398228304;
PRAGMA user_version = 1;
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE allocation (
  id              TEXT PRIMARY KEY,
  sweep           INTEGER NOT NULL REFERENCES sweep(id),
  launcher        TEXT NOT NULL,
  spool           TEXT NOT NULL,
  whereabouts     TEXT NOT NULL DEFAULT '',
  pid             INTEGER NOT NULL DEFAULT 0,
  incarnation     INTEGER NOT NULL DEFAULT 1,
  read_offset     INTEGER NOT NULL DEFAULT 0,    -- of the outbox; moves with what was ingested, in one transaction
  created_unix_ns INTEGER NOT NULL,
  ended_unix_ns   INTEGER,
  end_reason      TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO "allocation" VALUES('a0001-00c0ffee',1,'local','/spool/a0001-00c0ffee','',0,1,200,1700000000000000000,NULL,NULL);
CREATE TABLE attempt (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: spools know it
  entry           INTEGER NOT NULL REFERENCES plan_entry(key),
  allocation      TEXT NOT NULL REFERENCES allocation(id),
  state           INTEGER NOT NULL,
  world           INTEGER NOT NULL,
  request         TEXT NOT NULL,                      -- JSON: measuring plan, deadlines, limits
  posted_unix_ns  INTEGER NOT NULL,
  started_unix_ns INTEGER,
  ended_unix_ns   INTEGER,
  cause           TEXT,                               -- from here: the agent's closing word
  evidence        TEXT,
  clean           INTEGER,
  dirt            TEXT,
  util_mean       REAL,
  util_sd         REAL,
  power_mean_w    REAL,
  sm_clock_mhz    REAL,
  throttle        TEXT
) STRICT;
INSERT INTO "attempt" VALUES(1,1,'a0001-00c0ffee',3,2,'{"deadlines":{"first_step_s":120.0,"grace_s":3.0,"startup_s":120.0,"step_s":60.0,"total_s":3600.0},"log_limit_bytes":16777216,"measure":{"repeats":1,"steps":10,"warmup_steps":3},"start":"zygote"}',1700000000000000000,5,9,'done','',1,'',NULL,NULL,NULL,NULL,'');
INSERT INTO "attempt" VALUES(2,2,'a0001-00c0ffee',3,2,'{"deadlines":{"first_step_s":120.0,"grace_s":3.0,"startup_s":120.0,"step_s":60.0,"total_s":3600.0},"log_limit_bytes":16777216,"measure":{"repeats":1,"steps":10,"warmup_steps":3},"start":"zygote"}',1700000000000000000,5,9,'done','',1,'',NULL,NULL,NULL,NULL,'');
CREATE TABLE environment (
  allocation TEXT NOT NULL REFERENCES allocation(id),
  node       INTEGER NOT NULL,
  host       TEXT NOT NULL,
  facts      TEXT NOT NULL,
  PRIMARY KEY (allocation, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
  id      INTEGER PRIMARY KEY,
  sweep   INTEGER NOT NULL REFERENCES sweep(id),
  unix_ns INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  text    TEXT NOT NULL
) STRICT;
INSERT INTO "event" VALUES(1,1,1700000000000000000,'note','made by the first release');
CREATE TABLE lease (
  sweep             INTEGER PRIMARY KEY REFERENCES sweep(id),
  host              TEXT NOT NULL,
  boot_id           TEXT NOT NULL,
  pid               INTEGER NOT NULL,
  pid_start         INTEGER NOT NULL,
  token             TEXT NOT NULL,
  beats             INTEGER NOT NULL,
  heartbeat_unix_ns INTEGER NOT NULL
) STRICT;
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE plan_entry (
  key               INTEGER PRIMARY KEY,
  sweep             INTEGER NOT NULL REFERENCES sweep(id),
  trial             INTEGER NOT NULL REFERENCES trial(key),
  model             TEXT NOT NULL DEFAULT '',    -- label
  labels            TEXT NOT NULL DEFAULT '',    -- JSON of derived axes
  admitted          INTEGER NOT NULL,
  verdict           INTEGER NOT NULL,            -- outcome of one that was not admitted
  rule              TEXT NOT NULL DEFAULT '',
  reason            TEXT NOT NULL DEFAULT '',
  predicted_bytes   INTEGER,
  predicted_step_ms REAL,
  predicted_seconds REAL,
  place             INTEGER NOT NULL DEFAULT 0,  -- in the run order
  source            TEXT NOT NULL DEFAULT '',
  state             INTEGER NOT NULL,
  outcome           INTEGER,                     -- of the final attempt, or the verdict of one that was not admitted
  final_attempt     INTEGER REFERENCES attempt(id),
  attempts          INTEGER NOT NULL DEFAULT 0,
  reopened_after    INTEGER NOT NULL DEFAULT 0,  -- attempts up to this id no longer count against the retries
  UNIQUE (sweep, trial)
) STRICT;
INSERT INTO "plan_entry" VALUES(1,1,1,'tiny','{"tokens":4096}',1,9,'','',1000,1.5,2.0,1,'golden.yaml:7',3,0,1,1,0);
INSERT INTO "plan_entry" VALUES(2,1,2,'tiny','{"tokens":4096}',1,9,'','',2000,1.5,2.0,2,'golden.yaml:7',3,1,2,1,0);
INSERT INTO "plan_entry" VALUES(3,1,3,'tiny','{"tokens":4096}',0,9,'memory','needs 3 GiB, budget 2 GiB',3000,1.5,2.0,3,'golden.yaml:7',3,9,NULL,0,0);
INSERT INTO "plan_entry" VALUES(4,1,4,'tiny','{"tokens":4096}',1,9,'','',4000,1.5,2.0,4,'golden.yaml:7',0,NULL,NULL,0,0);
CREATE TABLE rank_record (
  attempt              INTEGER NOT NULL REFERENCES attempt(id),
  rank                 INTEGER NOT NULL,
  outcome              INTEGER,
  oom_kind             INTEGER,
  phase                TEXT,
  step                 INTEGER,
  message              TEXT,
  oom_asked_bytes      INTEGER,
  ended_unix_ns        INTEGER,
  consequential        INTEGER,
  startup_ns           INTEGER,
  peak_allocated_bytes INTEGER,
  peak_reserved_bytes  INTEGER,
  baseline_bytes       INTEGER,
  alloc_retries        INTEGER,
  ooms                 INTEGER,
  host_peak_rss_bytes  INTEGER,
  cpu_percent          REAL,
  effective            TEXT,
  pid                  INTEGER,
  exit_code            INTEGER,
  signal               INTEGER,
  killed_by_agent      INTEGER,
  oom_killed           INTEGER,
  exit_unix_ns         INTEGER,
  log_tail             TEXT,
  PRIMARY KEY (attempt, rank)
) STRICT, WITHOUT ROWID;
INSERT INTO "rank_record" VALUES(1,0,0,NULL,'done',0,'',NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rank_record" VALUES(1,1,0,NULL,'done',0,'',NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rank_record" VALUES(2,0,0,NULL,'done',0,'',NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rank_record" VALUES(2,1,0,NULL,'done',0,'',NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE ranking_group (
  id    INTEGER PRIMARY KEY,
  sweep INTEGER NOT NULL REFERENCES sweep(id),
  model TEXT NOT NULL,
  nodes INTEGER NOT NULL,
  UNIQUE (sweep, model, nodes)
) STRICT;
INSERT INTO "ranking_group" VALUES(1,1,'tiny',1);
CREATE TABLE result (
  attempt          INTEGER PRIMARY KEY REFERENCES attempt(id),
  outcome          INTEGER NOT NULL,
  oom_kind         INTEGER,
  reason           TEXT NOT NULL DEFAULT '',
  rank             INTEGER,
  phase            TEXT NOT NULL DEFAULT '',
  evidence         TEXT NOT NULL DEFAULT '',
  finished_unix_ns INTEGER NOT NULL,
  ranking          INTEGER REFERENCES ranking_group(id)
, "step_ms" REAL, "step_ms_iqr" REAL, "step_ms_ci_low" REAL, "step_ms_ci_high" REAL, "forward_ms" REAL, "backward_ms" REAL, "optimizer_ms" REAL, "exposed_comm_ms" REAL, "startup_ms" REAL, "timed_steps" INTEGER, "tokens_per_s" REAL, "tokens_per_s_gpu" REAL, "tflops_gpu" REAL, "mfu" REAL, "mfu_fwd_bwd" REAL, "hfu" REAL, "peak_flops" REAL, "mt_per_hour" REAL, "cost_per_mt" REAL, "peak_allocated_bytes" INTEGER, "peak_reserved_bytes" INTEGER, "peak_rank" INTEGER, "predicted_bytes" INTEGER, "predicted_ms" REAL, "alloc_retries" INTEGER, "ooms" INTEGER, "oom_asked_bytes" INTEGER, "util_mean" REAL, "util_sd" REAL, "power_mean_w" REAL, "sm_clock_mhz" REAL, "host_peak_rss_bytes" INTEGER, "loss_first" REAL, "loss_last" REAL, "mfu_reported" REAL, "formula_version" INTEGER) STRICT;
INSERT INTO "result" VALUES(1,0,NULL,'',NULL,'','',1700000000000000000,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1234.5,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "result" VALUES(2,1,NULL,'because',NULL,'','',1700000000000000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE step_sample (
  attempt         INTEGER NOT NULL,
  rank            INTEGER NOT NULL,
  repeat          INTEGER NOT NULL,
  step            INTEGER NOT NULL,
  warmup          INTEGER NOT NULL,
  step_ns         INTEGER NOT NULL,
  forward_ns      INTEGER NOT NULL,
  backward_ns     INTEGER NOT NULL,
  optimizer_ns    INTEGER NOT NULL,
  exposed_comm_ns INTEGER,
  tokens          INTEGER NOT NULL,
  loss            REAL,
  alloc_retries   INTEGER NOT NULL,
  PRIMARY KEY (attempt, rank, repeat, step),
  FOREIGN KEY (attempt, rank) REFERENCES rank_record(attempt, rank)
) STRICT, WITHOUT ROWID;
INSERT INTO "step_sample" VALUES(1,0,0,0,1,100,0,0,0,NULL,8,5.0,0);
INSERT INTO "step_sample" VALUES(1,0,0,1,0,101,0,0,0,NULL,8,4.0,0);
INSERT INTO "step_sample" VALUES(1,1,0,0,1,100,0,0,0,NULL,8,5.0,0);
INSERT INTO "step_sample" VALUES(1,1,0,1,0,101,0,0,0,NULL,8,4.0,0);
INSERT INTO "step_sample" VALUES(2,0,0,0,1,100,0,0,0,NULL,8,5.0,0);
INSERT INTO "step_sample" VALUES(2,0,0,1,0,101,0,0,0,NULL,8,4.0,0);
INSERT INTO "step_sample" VALUES(2,1,0,0,1,100,0,0,0,NULL,8,5.0,0);
INSERT INTO "step_sample" VALUES(2,1,0,1,0,101,0,0,0,NULL,8,4.0,0);
CREATE TABLE stop_request (
  sweep   INTEGER PRIMARY KEY REFERENCES sweep(id),
  now     INTEGER NOT NULL,
  unix_ns INTEGER NOT NULL
) STRICT;
CREATE TABLE sweep (
  id              INTEGER PRIMARY KEY,
  name            TEXT NOT NULL UNIQUE,
  question        TEXT NOT NULL DEFAULT '',
  grid_path       TEXT NOT NULL DEFAULT '',
  grid_text       TEXT NOT NULL DEFAULT '',
  options_json    TEXT NOT NULL DEFAULT '',
  measure_json    TEXT NOT NULL DEFAULT '',
  created_unix_ns INTEGER NOT NULL
) STRICT;
INSERT INTO "sweep" VALUES(1,'golden','Does the first release''s file still open?','golden.yaml','name: golden
','{"retries_crash": 1}','{"repeats":1,"steps":10,"warmup_steps":3}',1700000000000000000);
CREATE TABLE trial (
  key  INTEGER PRIMARY KEY,
  id   TEXT NOT NULL UNIQUE,  -- hash of the canonical configuration
  spec TEXT NOT NULL          -- dimensions of the model, JSON
, "hardware" TEXT NOT NULL DEFAULT 'cpu', "nodes" INTEGER NOT NULL DEFAULT 1, "gpus_per_node" INTEGER NOT NULL DEFAULT 1, "dp" INTEGER NOT NULL DEFAULT 1, "tp" INTEGER NOT NULL DEFAULT 1, "pp" INTEGER NOT NULL DEFAULT 1, "cp" INTEGER NOT NULL DEFAULT 1, "ep" INTEGER NOT NULL DEFAULT 1, "zero" INTEGER NOT NULL DEFAULT 0, "micro_batch_size" INTEGER NOT NULL DEFAULT 1, "grad_accum" INTEGER NOT NULL DEFAULT 1, "global_batch_size" INTEGER NOT NULL DEFAULT 1, "seq_len" INTEGER NOT NULL DEFAULT 1024, "precision" TEXT NOT NULL DEFAULT 'fp32', "recompute" TEXT NOT NULL DEFAULT 'none', "offload" TEXT NOT NULL DEFAULT 'none', "optimizer" TEXT NOT NULL DEFAULT 'fused', "attention" TEXT NOT NULL DEFAULT 'auto', "backend" TEXT NOT NULL DEFAULT 'auto', "bucket_mb" INTEGER NOT NULL DEFAULT 25, "packing" INTEGER NOT NULL DEFAULT 0, "memory_cap_bytes" INTEGER, "workload" TEXT NOT NULL DEFAULT 'step') STRICT;
INSERT INTO "trial" VALUES(1,'3af8d16d847c5b2b','{"attention_bias":false,"family":"llama","head_dim":0,"heads":0,"hidden_size":4,"intermediate_size":0,"kv_heads":0,"layers":2,"linear_bias":false,"max_positions":0,"norm_eps":1e-05,"rmsnorm":true,"rope":true,"rope_scaling":null,"rope_theta":10000.0,"sliding_window":null,"swiglu":true,"tie_embeddings":false,"vocab_size":0}','cpu',1,1,2,1,1,1,1,0,1,1,1,1024,'fp32','none','none','fused','auto','auto',25,0,NULL,'step');
INSERT INTO "trial" VALUES(2,'fdede20370cb5564','{"attention_bias":false,"family":"llama","head_dim":0,"heads":0,"hidden_size":4,"intermediate_size":0,"kv_heads":0,"layers":2,"linear_bias":false,"max_positions":0,"norm_eps":1e-05,"rmsnorm":true,"rope":true,"rope_scaling":null,"rope_theta":10000.0,"sliding_window":null,"swiglu":true,"tie_embeddings":false,"vocab_size":0}','cpu',1,1,2,1,1,1,1,0,2,1,1,1024,'fp32','none','none','fused','auto','auto',25,0,NULL,'step');
INSERT INTO "trial" VALUES(3,'a692095bc08e53dc','{"attention_bias":false,"family":"llama","head_dim":0,"heads":0,"hidden_size":4,"intermediate_size":0,"kv_heads":0,"layers":2,"linear_bias":false,"max_positions":0,"norm_eps":1e-05,"rmsnorm":true,"rope":true,"rope_scaling":null,"rope_theta":10000.0,"sliding_window":null,"swiglu":true,"tie_embeddings":false,"vocab_size":0}','cpu',1,1,2,1,1,1,1,0,3,1,1,1024,'fp32','none','none','fused','auto','auto',25,0,NULL,'step');
INSERT INTO "trial" VALUES(4,'45b48f276a685807','{"attention_bias":false,"family":"llama","head_dim":0,"heads":0,"hidden_size":4,"intermediate_size":0,"kv_heads":0,"layers":2,"linear_bias":false,"max_positions":0,"norm_eps":1e-05,"rmsnorm":true,"rope":true,"rope_scaling":null,"rope_theta":10000.0,"sliding_window":null,"swiglu":true,"tie_embeddings":false,"vocab_size":0}','cpu',1,1,2,1,1,1,1,0,4,1,1,1024,'fp32','none','none','fused','auto','auto',25,0,NULL,'step');
CREATE INDEX plan_entry_open ON plan_entry(sweep, place) WHERE state = 0;
CREATE INDEX plan_entry_progress ON plan_entry(sweep, state, outcome, predicted_seconds);
CREATE INDEX plan_entry_trial ON plan_entry(trial);
CREATE INDEX allocation_open ON allocation(sweep) WHERE ended_unix_ns IS NULL;
CREATE INDEX attempt_entry ON attempt(entry);
CREATE INDEX attempt_unfinished ON attempt(allocation) WHERE state < 3;
CREATE INDEX event_sweep ON event(sweep);
CREATE INDEX "result_by_step_ms" ON result(ranking, "step_ms") WHERE ranking IS NOT NULL;
CREATE INDEX "result_by_tokens_per_s" ON result(ranking, "tokens_per_s") WHERE ranking IS NOT NULL;
CREATE INDEX "result_by_tokens_per_s_gpu" ON result(ranking, "tokens_per_s_gpu") WHERE ranking IS NOT NULL;
CREATE INDEX "result_by_tflops_gpu" ON result(ranking, "tflops_gpu") WHERE ranking IS NOT NULL;
CREATE INDEX "result_by_mfu" ON result(ranking, "mfu") WHERE ranking IS NOT NULL;
CREATE INDEX "result_by_mt_per_hour" ON result(ranking, "mt_per_hour") WHERE ranking IS NOT NULL;
CREATE INDEX "result_by_cost_per_mt" ON result(ranking, "cost_per_mt") WHERE ranking IS NOT NULL;
CREATE VIEW results AS SELECT s.name AS sweep, t.id AS trial, CASE p.outcome WHEN 0 THEN 'ok' WHEN 1 THEN 'oom' WHEN 2 THEN 'hang' WHEN 3 THEN 'timeout' WHEN 4 THEN 'crash' WHEN 5 THEN 'invalid' WHEN 6 THEN 'node_lost' WHEN 7 THEN 'unsupported' WHEN 8 THEN 'cancelled' WHEN 9 THEN 'pruned' WHEN 10 THEN 'failed_unknown' END AS outcome, NULLIF(CASE WHEN p.final_attempt IS NULL THEN p.reason ELSE r.reason END, '') AS reason, p.model AS model, t."hardware", t."nodes", t."gpus_per_node", t."dp", t."tp", t."pp", t."cp", t."ep", t."zero", t."micro_batch_size", t."grad_accum", t."global_batch_size", t."seq_len", t."precision", t."recompute", t."offload", t."optimizer", t."attention", t."backend", t."bucket_mb", t."packing", t."memory_cap_bytes", t."workload", r."step_ms", r."step_ms_iqr", r."step_ms_ci_low", r."step_ms_ci_high", r."forward_ms", r."backward_ms", r."optimizer_ms", r."exposed_comm_ms", r."startup_ms", r."timed_steps", r."tokens_per_s", r."tokens_per_s_gpu", r."tflops_gpu", r."mfu", r."mfu_fwd_bwd", r."hfu", r."peak_flops", r."mt_per_hour", r."cost_per_mt", r."peak_allocated_bytes", r."peak_reserved_bytes", r."peak_rank", COALESCE(r."predicted_bytes", p.predicted_bytes) AS "predicted_bytes", COALESCE(r."predicted_ms", p.predicted_step_ms) AS "predicted_ms", r."alloc_retries", r."ooms", r."oom_asked_bytes", r."util_mean", r."util_sd", r."power_mean_w", r."sm_clock_mhz", r."host_peak_rss_bytes", r."loss_first", r."loss_last", r."mfu_reported", r."formula_version", p.attempts AS attempts, strftime('%Y-%m-%dT%H:%M:%SZ', r.finished_unix_ns / 1000000000, 'unixepoch') AS finished_at, CASE r.oom_kind WHEN 0 THEN 'device' WHEN 1 THEN 'host' END AS oom_kind, NULLIF(r.phase, '') AS phase, r.rank AS cause_rank, NULLIF(p.rule, '') AS rule, NULLIF(p.labels, '') AS labels, t.spec AS model_spec FROM plan_entry p JOIN sweep s ON s.id = p.sweep JOIN trial t ON t.key = p.trial LEFT JOIN result r ON r.attempt = p.final_attempt WHERE p.state <> 4;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('attempt',2);
COMMIT;
