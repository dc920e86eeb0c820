-- What is announced when a job ends, measured values over time, and baselines of the gate.

CREATE TABLE deliveries (
    job_id        TEXT COLLATE "C" PRIMARY KEY,
    url           TEXT COLLATE "C" NOT NULL,
    -- pending, delivered or failed
    state         TEXT COLLATE "C" NOT NULL,
    attempts      BIGINT NOT NULL,
    next_at       BIGINT NOT NULL,
    error         TEXT COLLATE "C"
);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';

CREATE TABLE points (
    id            TEXT COLLATE "C" PRIMARY KEY,
    owner         TEXT COLLATE "C" NOT NULL,
    case_name     TEXT COLLATE "C" NOT NULL,
    metric        TEXT COLLATE "C" NOT NULL,
    device        TEXT COLLATE "C" NOT NULL,
    method        TEXT COLLATE "C" NOT NULL,
    at            BIGINT NOT NULL,
    value         DOUBLE PRECISION NOT NULL,
    low           DOUBLE PRECISION,
    high          DOUBLE PRECISION,
    revision      TEXT COLLATE "C",
    job_id        TEXT COLLATE "C",
    detail        BYTEA NOT NULL
);
CREATE INDEX points_of_case ON points (case_name, owner, metric, device, method, id);

-- One row for each series of points, so that listing them does not read the points.
CREATE TABLE series (
    owner         TEXT COLLATE "C" NOT NULL,
    case_name     TEXT COLLATE "C" NOT NULL,
    metric        TEXT COLLATE "C" NOT NULL,
    device        TEXT COLLATE "C" NOT NULL,
    method        TEXT COLLATE "C" NOT NULL,
    points        BIGINT NOT NULL,
    latest_at     BIGINT NOT NULL,
    PRIMARY KEY (case_name, owner, metric, device, method)
);

CREATE TABLE baselines (
    id            TEXT COLLATE "C" PRIMARY KEY,
    owner         TEXT COLLATE "C" NOT NULL,
    name          TEXT COLLATE "C" NOT NULL,
    -- What it holds for: GPU model, driver, method.
    pin           TEXT COLLATE "C" NOT NULL,
    -- 1: the one that counts of those with the same owner, name and pin.
    promoted      BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    job_id        TEXT COLLATE "C",
    codec         BIGINT NOT NULL,
    body          BYTEA,
    object        TEXT COLLATE "C"
);
CREATE UNIQUE INDEX baselines_promoted ON baselines (owner, name, pin) WHERE promoted = 1;
CREATE INDEX baselines_named ON baselines (owner, name, pin, id);

INSERT INTO numbers (name, value) VALUES ('points', 0);
