-- Jobs are numbered as they arrive. The number is the rowid, with which SQLite ends every index by
-- itself: entries are a third as long as with the id, and accepting a job writes fewer pages.

CREATE TABLE jobs_by_arrival (
    arrival          INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    owner            TEXT NOT NULL,
    kind             TEXT NOT NULL,
    state            TEXT NOT NULL,
    priority         BIGINT NOT NULL,
    label            TEXT,
    webhook          TEXT,
    idempotency_key  TEXT,
    request_hash     BLOB NOT NULL,
    attempts         BIGINT NOT NULL,
    max_attempts     BIGINT NOT NULL,
    -- Who holds it; NULL: it waits, or has ended. Each lease has an epoch of its own.
    holder           TEXT,
    epoch            BIGINT NOT NULL,
    cancel_requested BIGINT NOT NULL DEFAULT 0,
    created_at       BIGINT NOT NULL,
    started_at       BIGINT,
    ended_at         BIGINT,
    error_code       TEXT,
    error            TEXT,
    bytes            BIGINT NOT NULL
);
-- Ids of jobs sort by age.
INSERT INTO jobs_by_arrival (id, owner, kind, state, priority, label, webhook, idempotency_key,
        request_hash, attempts, max_attempts, holder, epoch, cancel_requested, created_at, started_at,
        ended_at, error_code, error, bytes)
    SELECT id, owner, kind, state, priority, label, webhook, idempotency_key,
        request_hash, attempts, max_attempts, holder, epoch, cancel_requested, created_at, started_at,
        ended_at, error_code, error, bytes
    FROM jobs ORDER BY id;
DROP TABLE jobs;
ALTER TABLE jobs_by_arrival RENAME TO jobs;

CREATE UNIQUE INDEX jobs_key ON jobs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_waiting ON jobs (owner, priority DESC) WHERE state = 'queued' AND holder IS NULL;
CREATE INDEX jobs_held ON jobs (holder) WHERE holder IS NOT NULL;
CREATE INDEX jobs_of_owner ON jobs (owner);
CREATE INDEX jobs_in_state ON jobs (state);
CREATE INDEX jobs_of_kind ON jobs (kind);
CREATE INDEX jobs_labelled ON jobs (label) WHERE label IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
