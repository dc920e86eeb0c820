-- What is announced when a job ends, measured values over time, and baselines of the gate.

CREATE TABLE deliveries (
    job_id        TEXT PRIMARY KEY,
    url           TEXT NOT NULL,
    -- pending, delivered or failed
    state         TEXT NOT NULL,
    attempts      BIGINT NOT NULL,
    next_at       BIGINT NOT NULL,
    error         TEXT
);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';

CREATE TABLE points (
    id            TEXT PRIMARY KEY,
    owner         TEXT NOT NULL,
    case_name     TEXT NOT NULL,
    metric        TEXT NOT NULL,
    device        TEXT NOT NULL,
    method        TEXT NOT NULL,
    at            BIGINT NOT NULL,
    value         DOUBLE PRECISION NOT NULL,
    low           DOUBLE PRECISION,
    high          DOUBLE PRECISION,
    revision      TEXT,
    job_id        TEXT,
    detail        BLOB NOT NULL
);
CREATE INDEX points_of_case ON points (case_name, owner, metric, device, method, id);

-- One row for each series of points, so that listing them does not read the points.
CREATE TABLE series (
    owner         TEXT NOT NULL,
    case_name     TEXT NOT NULL,
    metric        TEXT NOT NULL,
    device        TEXT NOT NULL,
    method        TEXT NOT NULL,
    points        BIGINT NOT NULL,
    latest_at     BIGINT NOT NULL,
    PRIMARY KEY (case_name, owner, metric, device, method)
);

CREATE TABLE baselines (
    id            TEXT PRIMARY KEY,
    owner         TEXT NOT NULL,
    name          TEXT NOT NULL,
    -- What it holds for: GPU model, driver, method.
    pin           TEXT NOT NULL,
    -- 1: the one that counts of those with the same owner, name and pin.
    promoted      BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    job_id        TEXT,
    codec         BIGINT NOT NULL,
    body          BLOB,
    object        TEXT
);
CREATE UNIQUE INDEX baselines_promoted ON baselines (owner, name, pin) WHERE promoted = 1;
CREATE INDEX baselines_named ON baselines (owner, name, pin, id);

INSERT INTO numbers (name, value) VALUES ('points', 0);
