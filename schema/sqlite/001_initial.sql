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
  end_reason      TEXT,
  nodes           INTEGER,                       -- what it holds from its start to its end; NULL: never started
  gpus            INTEGER,                       -- of each node: GPUs, or slots where there are none
  started_unix_ns INTEGER
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
  cleanup_failure TEXT,
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
  sent                 TEXT,                  -- in the last step: JSON list of strategy, calls, bytes
  expert_load          REAL,
  skipped_steps        INTEGER,
  loss_scale           REAL,
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

-- The verdict on an attempt. Plus one column per metric.
CREATE TABLE result (
  attempt          INTEGER PRIMARY KEY REFERENCES attempt(id),
  outcome          INTEGER NOT NULL,
  oom_kind         INTEGER,
  reason           TEXT NOT NULL DEFAULT '',
  rank             INTEGER,
  phase            TEXT NOT NULL DEFAULT '',
  evidence         TEXT NOT NULL DEFAULT '',
  finished_unix_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE event (
  id      INTEGER PRIMARY KEY,
  sweep   INTEGER NOT NULL REFERENCES sweep(id),
  unix_ns INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  text    TEXT NOT NULL,
  attempt INTEGER             -- that the event is about; NULL: the sweep as a whole
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
  heartbeat_unix_ns INTEGER NOT NULL,
  slurm_job         INTEGER NOT NULL DEFAULT 0,  -- Slurm is asked whether the holder's job is over; 0: it is part of none
  slurm_cluster     TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE stop_request (
  sweep   INTEGER PRIMARY KEY REFERENCES sweep(id),
  now     INTEGER NOT NULL,
  unix_ns INTEGER NOT NULL
) STRICT;

-- What `sweep calibrate` measured, the latest under each name.
CREATE TABLE hardware_profile (
  name            TEXT PRIMARY KEY,
  hardware        TEXT NOT NULL,
  created_unix_ns INTEGER NOT NULL,
  profile         TEXT NOT NULL
) STRICT;

-- Columns of the public row in one piece, 4096 entries of a sweep (key >> 12) at a time, so that `best` reads the few
-- columns it needs of a hundred thousand results in milliseconds. Everything in it follows from the other tables: packed
-- holds no entry that is in `loose`, and any change of a result or a plan entry, whoever makes it, puts the entry there.
-- A column all of whose values are its default, or NULL, has no row. orchestrator/store/packed_column.h has the form.
CREATE TABLE packed (
  sweep INTEGER NOT NULL REFERENCES sweep(id),
  name  TEXT NOT NULL,                          -- a column of schema/columns.h, or `entry`: keys of plan_entry
  block INTEGER NOT NULL,
  data  BLOB NOT NULL,
  PRIMARY KEY (sweep, name, block)
) STRICT;

-- Plan entries whose packed columns, if any, are out of date: they are read from the tables.
CREATE TABLE loose (
  entry INTEGER PRIMARY KEY
) STRICT;

-- Not OR IGNORE: inside a trigger the conflict clause of the statement that fires it holds instead.
CREATE TRIGGER loose_entry_added AFTER INSERT ON plan_entry BEGIN
  INSERT INTO loose SELECT NEW.key WHERE NEW.key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_entry_changed AFTER UPDATE ON plan_entry BEGIN
  INSERT INTO loose SELECT NEW.key WHERE NEW.key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_entry_gone AFTER DELETE ON plan_entry BEGIN
  DELETE FROM packed WHERE sweep = OLD.sweep AND block = OLD.key >> 12;
  INSERT INTO loose SELECT key FROM plan_entry
    WHERE key >> 12 = OLD.key >> 12 AND sweep = OLD.sweep AND key NOT IN (SELECT entry FROM loose);
END;
-- A result belongs to the entry of its attempt and to those of other sweeps that took it over (--reuse), whose trial is
-- the same.
CREATE TRIGGER loose_result_added AFTER INSERT ON result BEGIN
  INSERT INTO loose SELECT p.key
    FROM attempt a JOIN plan_entry own ON own.key = a.entry JOIN plan_entry p ON p.trial = own.trial
    WHERE a.id = NEW.attempt AND (p.key = a.entry OR p.final_attempt = a.id)
      AND p.key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_result_changed AFTER UPDATE ON result BEGIN
  INSERT INTO loose SELECT p.key
    FROM attempt a JOIN plan_entry own ON own.key = a.entry JOIN plan_entry p ON p.trial = own.trial
    WHERE a.id = NEW.attempt AND (p.key = a.entry OR p.final_attempt = a.id)
      AND p.key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_result_gone AFTER DELETE ON result BEGIN
  INSERT INTO loose SELECT p.key
    FROM attempt a JOIN plan_entry own ON own.key = a.entry JOIN plan_entry p ON p.trial = own.trial
    WHERE a.id = OLD.attempt AND (p.key = a.entry OR p.final_attempt = a.id)
      AND p.key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_trial_changed AFTER UPDATE ON trial BEGIN
  INSERT INTO loose SELECT key FROM plan_entry WHERE trial = NEW.key AND key NOT IN (SELECT entry FROM loose);
END;
CREATE TRIGGER loose_sweep_renamed AFTER UPDATE OF name ON sweep BEGIN
  INSERT INTO loose SELECT key FROM plan_entry WHERE sweep = NEW.id AND key NOT IN (SELECT entry FROM loose);
END;
