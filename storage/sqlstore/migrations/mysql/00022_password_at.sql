-- +goose Up
-- Column and key in one statement, as in 00011. What reads changes finds all in the key.
SET @change = IF(
  (SELECT COUNT(*) FROM information_schema.columns
   WHERE table_schema = DATABASE() AND table_name = 'user_states' AND column_name = 'password_at') > 0,
  'DO 0',
  'ALTER TABLE user_states
     ADD COLUMN password_at BIGINT NOT NULL DEFAULT 0,
     DROP KEY idx_state_changes,
     ADD KEY idx_state_changes (changed_at, user_id, state, password_at)');
PREPARE change_user_states FROM @change;
EXECUTE change_user_states;
DEALLOCATE PREPARE change_user_states;
