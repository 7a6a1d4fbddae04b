-- The tables of a sweep database. Axes (table trial) and metrics (table result) are columns that the store adds from
-- schema/fields.def when it opens the file; the view `results` is generated from the same table.
-- Enumerations are the fixed integers of schema/outcome.h. Times are UTC in nanoseconds. NULL means not measured.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A sweep is its name in a database.
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

-- One full configuration, shared by the sweeps that ask for it. Plus one column per axis.
CREATE TABLE trial (
  key  INTEGER PRIMARY KEY,
  id   TEXT NOT NULL UNIQUE,  -- hash of the canonical configuration
  spec TEXT NOT NULL          -- dimensions of the model, JSON
) STRICT;

-- A trial's place in a sweep: the plan's decision and where it is now.
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
CREATE INDEX plan_entry_open ON plan_entry(sweep, place) WHERE state = 0;
CREATE INDEX plan_entry_progress ON plan_entry(sweep, state, outcome, predicted_seconds);
CREATE INDEX plan_entry_trial ON plan_entry(trial);

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
CREATE INDEX allocation_open ON allocation(sweep) WHERE ended_unix_ns IS NULL;

-- Facts of the machine and the build, once per allocation and node.
CREATE TABLE environment (
  allocation TEXT NOT NULL REFERENCES allocation(id),
  node       INTEGER NOT NULL,
  host       TEXT NOT NULL,
  facts      TEXT NOT NULL,
  PRIMARY KEY (allocation, node)
) STRICT, WITHOUT ROWID;

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
CREATE INDEX attempt_entry ON attempt(entry);
CREATE INDEX attempt_unfinished ON attempt(allocation) WHERE state < 3;

-- What a rank testified (outcome NULL: nothing) and how its process ended (killed_by_agent NULL: not known).
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

-- One optimizer step of one rank; warm-up steps are kept and marked. A loss of NULL was not finite. Written with its
-- rank_record in one go, so no foreign key looks it up again for each of the many rows.
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
  PRIMARY KEY (attempt, rank, repeat, step)
) STRICT, WITHOUT ROWID;

-- Model and node count by which `best` looks results up.
CREATE TABLE ranking_group (
  id    INTEGER PRIMARY KEY,
  sweep INTEGER NOT NULL REFERENCES sweep(id),
  model TEXT NOT NULL,
  nodes INTEGER NOT NULL,
  UNIQUE (sweep, model, nodes)
) STRICT;

-- The verdict on an attempt. Plus one column per metric. `ranking` is set while the attempt is its trial's final one,
-- ended ok, and the trial is in the plan; the indices behind `best` hold those rows only.
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
) STRICT;

CREATE TABLE event (
  id      INTEGER PRIMARY KEY,
  sweep   INTEGER NOT NULL REFERENCES sweep(id),
  unix_ns INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  text    TEXT NOT NULL
) STRICT;
CREATE INDEX event_sweep ON event(sweep);

-- Who runs a sweep. `beats` only grows: it tells a living holder from a clock that jumped.
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

CREATE TABLE stop_request (
  sweep   INTEGER PRIMARY KEY REFERENCES sweep(id),
  now     INTEGER NOT NULL,
  unix_ns INTEGER NOT NULL
) STRICT;
