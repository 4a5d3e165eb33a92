-- +goose Up
-- Dismissed suggestions are relations of the kind 3, which end 180 days later. Those that still hold are moved here, with their rows on the
-- other side where that is this shard; elsewhere kith reconcile writes them, and nobody sees them. All of it is one transaction, and may
-- run again. The old table stays, empty: gateways of the version before that still run read it.
INSERT OR IGNORE INTO relation (from_user_id, to_user_id, kind, type, update_time, ends_at, attributes)
SELECT user_id, dismissed_id, 3, 1, at, at + 15552000000000, ''
FROM suggestion_dismissals
WHERE at > CAST(strftime('%s', 'now') AS INTEGER) * 1000000 - 15552000000000;

INSERT OR IGNORE INTO relation_inbox (to_user_id, from_user_id, kind, type, update_time)
SELECT relation.to_user_id, relation.from_user_id, 3, 1, relation.update_time
FROM relation
JOIN users ON users.user_id = relation.to_user_id
WHERE relation.kind = 3 AND relation.type = 1;

REPLACE INTO relation_counts (owner, kind, outgoing, incoming)
SELECT owner, 3, SUM(outgoing), SUM(incoming)
FROM (
  SELECT from_user_id AS owner, 1 AS outgoing, 0 AS incoming FROM relation WHERE kind = 3 AND type = 1
  UNION ALL
  SELECT to_user_id, 0, 1 FROM relation_inbox WHERE kind = 3 AND type = 1
) AS counted
GROUP BY owner;

DELETE FROM suggestion_dismissals;
