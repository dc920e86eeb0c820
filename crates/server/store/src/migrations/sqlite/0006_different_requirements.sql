-- Nothing changes here: statements name the index that they take. Both databases have the same versions.
SELECT 1;
