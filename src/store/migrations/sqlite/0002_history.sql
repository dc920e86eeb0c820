-- What runs showed of cases, and code that candidates are compared with.

CREATE TABLE points (
    -- Sorts by age.
    id            TEXT PRIMARY KEY,
    owner         TEXT NOT NULL,
    case_name     TEXT NOT NULL,
    body          BLOB NOT NULL
);
CREATE INDEX points_of_case ON points (case_name, id);
CREATE INDEX points_of_owner ON points (owner, case_name, id);

CREATE TABLE baselines (
    owner         TEXT NOT NULL,
    name          TEXT NOT NULL,
    stored_at     BIGINT NOT NULL,
    summary       BLOB NOT NULL,
    codec         BIGINT NOT NULL,
    body          BLOB,
    object        TEXT,
    PRIMARY KEY (owner, name)
);
