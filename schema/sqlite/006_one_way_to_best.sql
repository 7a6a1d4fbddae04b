-- `best` reads the packed columns. What kept an order of the results by seven metrics goes.
DROP INDEX IF EXISTS result_by_step_ms;
DROP INDEX IF EXISTS result_by_tokens_per_s;
DROP INDEX IF EXISTS result_by_tokens_per_s_gpu;
DROP INDEX IF EXISTS result_by_tflops_gpu;
DROP INDEX IF EXISTS result_by_mfu;
DROP INDEX IF EXISTS result_by_mt_per_hour;
DROP INDEX IF EXISTS result_by_cost_per_mt;
ALTER TABLE result DROP COLUMN ranking;
DROP TABLE ranking_group;
