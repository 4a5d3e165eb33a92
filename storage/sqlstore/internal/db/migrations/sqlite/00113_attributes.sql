-- +goose Up
-- A product's own attributes beside users, posts and marks: storage.Attributes. first_at is when the first follow of a pair began, NULL while that
-- is the last one.
ALTER TABLE users ADD COLUMN attributes TEXT NOT NULL DEFAULT '';

ALTER TABLE post ADD COLUMN attributes TEXT NOT NULL DEFAULT '';

ALTER TABLE edge_marks ADD COLUMN attributes TEXT NOT NULL DEFAULT '';

ALTER TABLE following ADD COLUMN first_at INTEGER;
