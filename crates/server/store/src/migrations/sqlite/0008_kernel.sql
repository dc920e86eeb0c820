-- Name of the kernel in a job's report, and its median time, nanoseconds; NULL: it has no report, the report has none, or an
-- earlier version wrote it.
ALTER TABLE jobs ADD COLUMN kernel TEXT;
ALTER TABLE jobs ADD COLUMN median_ns BIGINT;
