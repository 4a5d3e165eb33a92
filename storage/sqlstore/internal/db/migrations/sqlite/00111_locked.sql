-- +goose Up
-- Whether follows of the user wait for its approval.
ALTER TABLE users ADD COLUMN locked INTEGER NOT NULL DEFAULT 0;
