-- What runs showed of cases, and code that candidates are compared with.

CREATE TABLE points (
    -- Sorts by age.
    id            TEXT COLLATE "C" PRIMARY KEY,
    owner         TEXT COLLATE "C" NOT NULL,
    case_name     TEXT COLLATE "C" NOT NULL,
    body          BYTEA NOT NULL
);
CREATE INDEX points_of_case ON points (case_name, id);
CREATE INDEX points_of_owner ON points (owner, case_name, id);

CREATE TABLE baselines (
    owner         TEXT COLLATE "C" NOT NULL,
    name          TEXT COLLATE "C" NOT NULL,
    stored_at     BIGINT NOT NULL,
    summary       BYTEA NOT NULL,
    codec         BIGINT NOT NULL,
    body          BYTEA,
    object        TEXT COLLATE "C",
    PRIMARY KEY (owner, name)
);
