-- As PostgreSQL's, which names it for what it is for; here statements name the index that they take.
DROP INDEX jobs_requiring;
CREATE INDEX jobs_requiring ON jobs (requires)
    WHERE state = 'queued' AND holder IS NULL AND requires IS NOT NULL;
