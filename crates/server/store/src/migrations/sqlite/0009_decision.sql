-- What a gate's report decides, in a word, and its worst case, as JSON; NULL: the job is no gate, it has no report, or an
-- earlier version wrote it.
ALTER TABLE jobs ADD COLUMN decision TEXT;
ALTER TABLE jobs ADD COLUMN worst_case TEXT;
-- Lists filter by both words.
CREATE INDEX jobs_of_verdict ON jobs (verdict) WHERE verdict IS NOT NULL;
CREATE INDEX jobs_decided ON jobs (decision) WHERE decision IS NOT NULL;
