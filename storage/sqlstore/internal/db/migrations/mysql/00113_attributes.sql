-- +goose Up
-- A product's own attributes beside users, posts and marks: storage.Attributes. first_at is when the first follow of a pair began, NULL while that
-- is the last one. Every column has a default, so that each change is of the table's definition alone, however many rows there are.
-- Each statement commits by itself and may run again. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'users' AND column_name = 'attributes');
SET @change = IF(@missing, 'ALTER TABLE users ADD COLUMN attributes VARBINARY(4096) NOT NULL DEFAULT ''''', 'DO 0');
PREPARE add_attributes_of_users FROM @change;
EXECUTE add_attributes_of_users;
DEALLOCATE PREPARE add_attributes_of_users;

SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'post' AND column_name = 'attributes');
SET @change = IF(@missing, 'ALTER TABLE post ADD COLUMN attributes VARBINARY(4096) NOT NULL DEFAULT ''''', 'DO 0');
PREPARE add_attributes_of_post FROM @change;
EXECUTE add_attributes_of_post;
DEALLOCATE PREPARE add_attributes_of_post;

SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'edge_marks' AND column_name = 'attributes');
SET @change = IF(@missing, 'ALTER TABLE edge_marks ADD COLUMN attributes VARBINARY(4096) NOT NULL DEFAULT ''''', 'DO 0');
PREPARE add_attributes_of_edge_marks FROM @change;
EXECUTE add_attributes_of_edge_marks;
DEALLOCATE PREPARE add_attributes_of_edge_marks;

SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'following' AND column_name = 'first_at');
SET @change = IF(@missing, 'ALTER TABLE following ADD COLUMN first_at BIGINT NULL', 'DO 0');
PREPARE add_first_at_of_following FROM @change;
EXECUTE add_first_at_of_following;
DEALLOCATE PREPARE add_first_at_of_following;
