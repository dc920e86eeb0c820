-- Jobs, who submitted them, who runs them, and what came of them.
-- Times are microseconds since 1970. Ids of jobs sort by age.

CREATE TABLE owners (
    owner         TEXT PRIMARY KEY,
    -- Jobs that wait in the database, and jobs that some process holds.
    waiting       BIGINT NOT NULL DEFAULT 0,
    running       BIGINT NOT NULL DEFAULT 0,
    -- Device time this owner had, microseconds; the least served goes first.
    served        BIGINT NOT NULL DEFAULT 0,
    -- Bytes of their requests and reports, before compression.
    bytes         BIGINT NOT NULL DEFAULT 0,
    -- Jobs by state.
    n_submitted   BIGINT NOT NULL DEFAULT 0,
    n_queued      BIGINT NOT NULL DEFAULT 0,
    n_compiling   BIGINT NOT NULL DEFAULT 0,
    n_validating  BIGINT NOT NULL DEFAULT 0,
    n_profiling   BIGINT NOT NULL DEFAULT 0,
    n_completed   BIGINT NOT NULL DEFAULT 0,
    n_failed      BIGINT NOT NULL DEFAULT 0,
    n_cancelled   BIGINT NOT NULL DEFAULT 0,
    n_timed_out   BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX owners_waiting ON owners (served, owner) WHERE waiting > 0;

CREATE TABLE instances (
    instance      TEXT PRIMARY KEY,
    -- The machine's boot: a process of another boot, or machine, is known by its lease alone.
    machine       TEXT NOT NULL,
    lease_until   BIGINT NOT NULL
);

CREATE TABLE jobs (
    id               TEXT PRIMARY KEY,
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
CREATE UNIQUE INDEX jobs_key ON jobs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_waiting ON jobs (owner, priority DESC, id) WHERE state = 'queued' AND holder IS NULL;
CREATE INDEX jobs_held ON jobs (holder) WHERE holder IS NOT NULL;
CREATE INDEX jobs_of_owner ON jobs (owner, id);
CREATE INDEX jobs_in_state ON jobs (state, id);
CREATE INDEX jobs_of_kind ON jobs (kind, id);
CREATE INDEX jobs_labelled ON jobs (label, id) WHERE label IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;

-- A body is here, or in the file that `object` names. `codec` 0: as it is, 1: zstd.
CREATE TABLE requests (
    job_id        TEXT PRIMARY KEY,
    codec         BIGINT NOT NULL,
    body          BLOB,
    object        TEXT
);

CREATE TABLE reports (
    job_id        TEXT PRIMARY KEY,
    version       BIGINT NOT NULL,
    kind          TEXT NOT NULL,
    codec         BIGINT NOT NULL,
    body          BLOB,
    object        TEXT
);
CREATE TRIGGER reports_are_immutable BEFORE UPDATE ON reports
BEGIN
    SELECT RAISE(ABORT, 'a stored report is never changed');
END;

CREATE TABLE artifacts (
    job_id        TEXT NOT NULL,
    name          TEXT NOT NULL,
    kind          TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    bytes         BIGINT NOT NULL,
    -- What it weighs as it is stored.
    packed        BIGINT NOT NULL,
    -- 1: its bytes gave way to younger artifacts.
    gone          BIGINT NOT NULL DEFAULT 0,
    codec         BIGINT NOT NULL,
    body          BLOB,
    object        TEXT,
    PRIMARY KEY (job_id, name)
);
CREATE INDEX artifacts_by_age ON artifacts (created_at) WHERE gone = 0;

CREATE TABLE numbers (
    name          TEXT PRIMARY KEY,
    value         BIGINT NOT NULL
);
INSERT INTO numbers (name, value) VALUES ('virtual_time', 0), ('artifact_bytes', 0);
