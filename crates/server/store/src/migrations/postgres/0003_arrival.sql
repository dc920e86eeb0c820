-- Jobs are numbered as they arrive: entries of indexes that end with the number are a third as long as
-- with the id.

ALTER TABLE jobs ADD COLUMN arrival BIGINT;
-- Ids of jobs sort by age.
UPDATE jobs SET arrival = numbered.arrival
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS arrival FROM jobs) AS numbered
    WHERE jobs.id = numbered.id;
ALTER TABLE jobs ALTER COLUMN arrival SET NOT NULL;
ALTER TABLE jobs ALTER COLUMN arrival ADD GENERATED ALWAYS AS IDENTITY;
SELECT setval(pg_get_serial_sequence('jobs', 'arrival'), COALESCE(MAX(arrival), 0) + 1, false) FROM jobs;

DROP INDEX jobs_waiting, jobs_of_owner, jobs_in_state, jobs_of_kind, jobs_labelled;
CREATE UNIQUE INDEX jobs_arrived ON jobs (arrival);
CREATE INDEX jobs_waiting ON jobs (owner, priority DESC, arrival)
    WHERE state = 'queued' AND holder IS NULL;
CREATE INDEX jobs_of_owner ON jobs (owner, arrival);
CREATE INDEX jobs_in_state ON jobs (state, arrival);
CREATE INDEX jobs_of_kind ON jobs (kind, arrival);
CREATE INDEX jobs_labelled ON jobs (label, arrival) WHERE label IS NOT NULL;

-- Bodies are compressed before they come here.
ALTER TABLE requests ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE reports ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE artifacts ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE baselines ALTER COLUMN body SET STORAGE EXTERNAL;
