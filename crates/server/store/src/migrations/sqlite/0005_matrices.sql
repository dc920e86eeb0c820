-- Sparse matrices that were uploaded: one under each name of an owner. A new one has a file of its own and
-- takes the place of the old row, so that readers have one or the other.
CREATE TABLE matrices (
    owner         TEXT NOT NULL,
    name          TEXT NOT NULL,
    -- blake3 of what was uploaded, hex.
    hash          TEXT NOT NULL,
    -- Bytes of the matrix, unpacked: what counts against the owner's quota.
    bytes         BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    -- What its reader knows of it.
    detail        BLOB NOT NULL,
    codec         BIGINT NOT NULL,
    object        TEXT NOT NULL,
    PRIMARY KEY (owner, name)
);
CREATE INDEX matrices_object ON matrices (object);
