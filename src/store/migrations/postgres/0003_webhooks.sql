-- Ends of jobs that somebody wants to be told of, until they were.

CREATE TABLE webhooks (
    job_id        TEXT COLLATE "C" PRIMARY KEY,
    url           TEXT NOT NULL,
    state         TEXT NOT NULL,
    ended_at      BIGINT NOT NULL,
    attempts      BIGINT NOT NULL DEFAULT 0,
    due_at        BIGINT NOT NULL
);
CREATE INDEX webhooks_due ON webhooks (due_at);

-- However a job ends, its webhook is there when that is committed.
CREATE FUNCTION webhook_of_ended_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhooks (job_id, url, state, ended_at, due_at)
    VALUES (NEW.id, NEW.webhook, NEW.state, NEW.ended_at, NEW.ended_at);
    RETURN NULL;
END
$$;
CREATE TRIGGER webhooks_of_ended_jobs AFTER UPDATE OF ended_at ON jobs FOR EACH ROW
WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.webhook IS NOT NULL)
EXECUTE FUNCTION webhook_of_ended_job();
