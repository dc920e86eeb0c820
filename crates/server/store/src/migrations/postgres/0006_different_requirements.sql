-- For finding the different requirements of jobs that wait, and for nothing else: by its condition it does not
-- serve for finding jobs, for which it was preferred to jobs_waiting where little was known of the table, and what
-- it found was sorted.
DROP INDEX jobs_requiring;
CREATE INDEX jobs_requiring ON jobs (requires)
    WHERE state = 'queued' AND holder IS NULL AND length(requires) >= 0;
