-- +goose Up
-- The lists of users. The number of a list is when it was created. Its members are relations of the kind 1048576 + number.
CREATE TABLE IF NOT EXISTS user_list (
  owner  BIGINT           NOT NULL,
  number BIGINT           NOT NULL,
  name   VARCHAR(60)      NOT NULL,
  public TINYINT UNSIGNED NOT NULL,
  PRIMARY KEY (owner, number)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
