package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Served by the primary key.
	sqlIdentities = `
SELECT user_id, issuer, subject
FROM identities
WHERE digest IN (?)`

	// Served by idx_identity_user.
	sqlIdentitiesOf = `
SELECT digest
FROM identities
WHERE user_id = ? AND digest > ?
ORDER BY digest LIMIT ?`

	// Served by the primary key or idx_identity_user.
	sqlRemoveIdentity = `
DELETE FROM identities
WHERE digest = ? AND user_id = ?`
)

var sqlLinkIdentity = db.Text{
	MySQL: `
INSERT IGNORE INTO identities (digest, user_id, issuer, subject, linked_at)
VALUES (?, ?, ?, ?, ?)`,
	SQLite: `
INSERT OR IGNORE INTO identities (digest, user_id, issuer, subject, linked_at)
VALUES (?, ?, ?, ?, ?)`,
}

// UsersOfIdentities implements [storage.IdentityStore]. The digest finds a row, and the row says
// whose digest it is: that of another identity would be no more than not found.
func (s *Store) UsersOfIdentities(ctx context.Context, identities []storage.Identity) []storage.Result[storage.UserID] {
	shardOf := func(i storage.Identity) int { return s.shards.OfHandle(i.Digest()) }
	return db.LookUp(s.db, identities, s.sql.MaxKeys, shardOf, func(shard int, identities []storage.Identity, found func(storage.Identity, storage.UserID)) error {
		args := make([]any, len(identities))
		asked := make(map[storage.Identity]bool, len(identities))
		for i, id := range identities {
			args[i], asked[id] = id.Digest(), id.Valid()
		}
		return s.db.Query(ctx, "identities", shard, len(identities), db.Listed(sqlIdentities, len(identities)), args, func(rows *sql.Rows) error {
			user, id, err := scanIdentity(rows)
			if asked[id] {
				found(id, user)
			}
			return err
		})
	})
}

func scanIdentity(rows *sql.Rows) (user storage.UserID, id storage.Identity, err error) {
	err = rows.Scan(&user, &id.Issuer, &id.Subject)
	return user, id, err
}

// LinkIdentity implements [storage.IdentityStore].
func (s *Store) LinkIdentity(ctx context.Context, identity storage.Identity, user storage.UserID, at storage.Micros) error {
	digest := identity.Digest()
	var owner storage.UserID
	var linked storage.Identity
	err := s.transact(ctx, "identities", func() int { return s.shards.OfHandle(digest) }, func(w *writer) error {
		w.touchIdentity(digest)
		_, err := w.Exec(1, s.sql.Text(sqlLinkIdentity), digest, int64(user), identity.Issuer, identity.Subject, int64(at))
		if err != nil {
			return err
		}
		return w.Read(1, sqlIdentities, []any{digest}, func(rows *sql.Rows) (err error) {
			owner, linked, err = scanIdentity(rows)
			return err
		})
	})
	if err == nil && (owner != user || linked != identity) {
		err = fmt.Errorf("%w: it stands for user %s", storage.ErrIdentityTaken, owner)
	}
	return err
}

// eraseIdentities removes the identities of a user, on all shards. An identity is looked for where it
// is now: its bucket may have moved since the shard was read.
func (s *Store) eraseIdentities(ctx context.Context, user storage.UserID) error {
	for shard := range s.db.All() {
		for after, more := "", true; more; {
			var digests []string
			err := s.db.Query(ctx, "identities.of", shard, erasedAtOnce, sqlIdentitiesOf, []any{int64(user), after, erasedAtOnce}, func(rows *sql.Rows) error {
				var digest string
				err := rows.Scan(&digest)
				digests = append(digests, digest)
				return err
			})
			if err != nil {
				return err
			}
			for _, digest := range digests {
				err := s.transact(ctx, "erase", func() int { return s.shards.OfHandle(digest) }, func(w *writer) error {
					w.touchIdentity(digest)
					_, err := w.Exec(1, sqlRemoveIdentity, digest, int64(user))
					return err
				})
				if err != nil {
					return err
				}
				after = digest
			}
			more = len(digests) == erasedAtOnce
		}
	}
	return nil
}
