-- +goose Up
-- Edges of all declared kinds: from_user_id relates to to_user_id by a kind, until ends_at unless that is 0.
CREATE TABLE IF NOT EXISTS relation (
  from_user_id BIGINT           NOT NULL,
  to_user_id   BIGINT           NOT NULL,
  kind         BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  ends_at      BIGINT           NOT NULL DEFAULT 0,
  attributes   TEXT             NOT NULL,
  PRIMARY KEY (from_user_id, to_user_id, kind),
  KEY idx_relation_list (from_user_id, kind, type, update_time, to_user_id),
  KEY idx_relation_end (ends_at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS relation_inbox (
  to_user_id   BIGINT           NOT NULL,
  from_user_id BIGINT           NOT NULL,
  kind         BIGINT           NOT NULL,
  type         TINYINT UNSIGNED NOT NULL,
  update_time  BIGINT           NOT NULL,
  PRIMARY KEY (to_user_id, from_user_id, kind),
  KEY idx_relation_inbox_list (to_user_id, kind, type, update_time, from_user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- How many edges of a kind leave and enter an owner.
CREATE TABLE IF NOT EXISTS relation_counts (
  owner    BIGINT NOT NULL,
  kind     BIGINT NOT NULL,
  outgoing BIGINT NOT NULL DEFAULT 0,
  incoming BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, kind)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
