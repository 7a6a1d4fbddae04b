-- What a rank sent in its last step (JSON list of strategy, calls, bytes), and what its steps said beside their times.
ALTER TABLE rank_record ADD COLUMN sent TEXT;
ALTER TABLE rank_record ADD COLUMN expert_load REAL;
ALTER TABLE rank_record ADD COLUMN skipped_steps INTEGER;
ALTER TABLE rank_record ADD COLUMN loss_scale REAL;
