-- +goose Up
-- A column that no version has read or written.
ALTER TABLE users DROP COLUMN ext_info;
