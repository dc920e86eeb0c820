-- What a job's report says of the kernel, in a word; NULL: it has no report, or an earlier version wrote it.
ALTER TABLE jobs ADD COLUMN verdict TEXT;
