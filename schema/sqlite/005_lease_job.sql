-- The Slurm job that the holder of a lease is part of: Slurm is asked whether it is over. 0: it is part of none, or of a
-- version that did not ask.
ALTER TABLE lease ADD COLUMN slurm_job INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN slurm_cluster TEXT NOT NULL DEFAULT '';
