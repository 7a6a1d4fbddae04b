-- What an allocation holds from its start to its end, for limits over all runs of a sweep. NULL: never started, or of a
-- version that did not ask.
ALTER TABLE allocation ADD COLUMN nodes INTEGER;
ALTER TABLE allocation ADD COLUMN gpus INTEGER;             -- of each node: GPUs, or slots where there are none
ALTER TABLE allocation ADD COLUMN started_unix_ns INTEGER;
