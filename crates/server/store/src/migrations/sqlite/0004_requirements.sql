-- What a job requires of whoever carries it out, as a text that its reader knows; NULL: nothing. A
-- process takes those that it can serve.
ALTER TABLE jobs ADD COLUMN requires TEXT;
DROP INDEX jobs_waiting;
CREATE INDEX jobs_waiting ON jobs (owner, requires, priority DESC)
    WHERE state = 'queued' AND holder IS NULL;
CREATE INDEX jobs_requiring ON jobs (requires)
    WHERE state = 'queued' AND holder IS NULL AND requires IS NOT NULL;

-- What a process has; NULL: it takes no jobs.
ALTER TABLE instances ADD COLUMN offers TEXT;
