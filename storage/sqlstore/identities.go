package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

var (
	// Served by the primary key.
	sqlIdentities = db.WithColumns(`
SELECT {identities but digest, linked_at}
FROM identities
WHERE digest IN (?)`)

	// Served by idx_identity_user.
	sqlIdentitiesOf = db.WithColumns(`
SELECT {identities but digest}
FROM identities
WHERE user_id = ? AND digest > ?
ORDER BY digest LIMIT ?`)

	// Locked, so that if two callers count at once, one waits for what the other has linked. Served
	// by idx_identity_user.
	sqlCountIdentities = `
SELECT digest
FROM identities
WHERE user_id = ? LIMIT ? /*! FOR UPDATE */`

	// Served by the primary key.
	sqlIdentitiesBehind = db.WithColumns(`
SELECT {identities but digest}
FROM identities
WHERE digest > ?
ORDER BY digest LIMIT ?`)

	// Served by the primary key.
	sqlIdentitiesThere = db.WithColumns(`
SELECT {identities but digest, linked_at}
FROM identities
WHERE digest IN (?) /*! FOR UPDATE */`)

	// Served by the primary key or idx_identity_user.
	sqlRemoveIdentity = `
DELETE FROM identities
WHERE digest = ? AND user_id = ?`
)

var sqlLinkIdentity = db.Both(db.WithColumns(`
INSERT OR IGNORE INTO identities ({identities})
VALUES ({?})`))

// readIdentities answers [storage.IdentityLookups]. The digest finds a row, and the row says
// whose digest it is. If it is that of another identity, the one asked for is not found.
func (s *Store) readIdentities(ctx context.Context, identities []storage.Identity) []storage.Result[storage.UserID] {
	shardOf := func(i storage.Identity) int { return s.shards.OfHandle(i.Digest()) }
	return db.LookUp(s.db, identities, s.sql.MaxKeys, shardOf, func(shard int, identities []storage.Identity, found func(storage.Identity, storage.UserID)) error {
		args := make([]any, len(identities))
		asked := make(map[storage.Identity]bool, len(identities))
		for i, id := range identities {
			args[i], asked[id] = id.Digest(), id.Valid()
		}
		return s.db.Query(ctx, "identities", shard, len(identities), db.Listed(sqlIdentities, len(identities)), args, db.EachEntry(identityColumns, func(user storage.UserID, id storage.Identity) {
			if asked[id] {
				found(id, user)
			}
		}))
	})
}

// identityColumns are the values of {identities but digest, linked_at}.
func identityColumns(user *storage.UserID, id *storage.Identity) []any {
	return []any{user, &id.Issuer, &id.Subject}
}

// linkedColumns are the values of {identities but digest}.
func linkedColumns(l *storage.LinkedIdentity) []any {
	return []any{&l.User, &l.Issuer, &l.Subject, &l.At}
}

// LinkIdentity implements [storage.Store].
func (s *Store) LinkIdentity(ctx context.Context, identity storage.Identity, user storage.UserID, at storage.Micros) error {
	digest := identity.Digest()
	var owner storage.UserID
	var linked storage.Identity
	err := s.transact(ctx, "identities", func() int { return s.shards.OfHandle(digest) }, func(w *writer) error {
		w.touchIdentity(digest)
		made, err := w.Exec(1, s.sql.Text(sqlLinkIdentity), digest, int64(user), identity.Issuer, identity.Subject, int64(at))
		if err != nil {
			return err
		}
		if made > 0 {
			owner, linked = user, identity
			return w.boundIdentities(user)
		}
		_, err = w.ReadOne(sqlIdentities, []any{digest}, identityColumns(&owner, &linked)...)
		return err
	})
	if err == nil && (owner != user || linked != identity) {
		err = fmt.Errorf("identity %w: it stands for user %s", storage.ErrKeyTaken, owner)
	}
	return err
}

// boundIdentities refuses what has just been linked, if the user has too many on this shard.
func (w *writer) boundIdentities(user storage.UserID) error {
	var digests []string
	err := w.Read(storage.MaxIdentities, sqlCountIdentities, []any{int64(user), storage.MaxIdentities + 1}, db.AppendTo(&digests, db.OneColumn))
	if err == nil && len(digests) > storage.MaxIdentities {
		err = fmt.Errorf("%w: user %s has %d identities", storage.ErrLimitReached, user, storage.MaxIdentities)
	}
	return err
}

// UnlinkIdentity implements [storage.Store].
func (s *Store) UnlinkIdentity(ctx context.Context, identity storage.Identity, user storage.UserID) (was bool, err error) {
	return s.removeIdentity(ctx, "identities", identity.Digest(), user)
}

func (s *Store) removeIdentity(ctx context.Context, what, digest string, user storage.UserID) (was bool, err error) {
	err = s.transact(ctx, what, func() int { return s.shards.OfHandle(digest) }, func(w *writer) error {
		w.touchIdentity(digest)
		n, err := w.Exec(1, sqlRemoveIdentity, digest, int64(user))
		was = n > 0
		return err
	})
	return was, err
}

// readLinks answers [storage.LinkLookups].
func (s *Store) readLinks(ctx context.Context, user storage.UserID) ([]storage.LinkedIdentity, error) {
	return topOf(s, math.MaxInt, storage.LinkedIdentity.Compare, func(i int, owns func(bucket int) bool) (list []storage.LinkedIdentity, err error) {
		err = s.db.Query(ctx, "identities.of", i, storage.MaxIdentities, sqlIdentitiesOf, []any{int64(user), "", erasedAtOnce}, db.AppendTo(&list, linkedColumns))
		moving := func(l storage.LinkedIdentity) bool { return !owns(storage.BucketOfHandle(l.Digest())) }
		return slices.DeleteFunc(list, moving), err
	})
}

func (s *Store) restoreIdentities(ctx context.Context, identities []storage.LinkedIdentity) []storage.Result[bool] {
	shardOf := func(l storage.LinkedIdentity) int { return s.shards.OfHandle(l.Digest()) }
	return byShard(ctx, s, identities, s.sql.MaxRows, shardOf, func(p db.Part, all []storage.LinkedIdentity, results []storage.Result[bool]) {
		restored, err := transactOf(ctx, s, "identities", p.Shard, func(w *writer) ([]storage.Result[bool], error) {
			return w.restoreIdentities(storage.Chosen(all, p.At))
		})
		place(results, p.At, restored, err)
	})
}

// restoreIdentities writes those identities of one shard that are free. If several have the same digest,
// the first is written.
func (w *writer) restoreIdentities(identities []storage.LinkedIdentity) ([]storage.Result[bool], error) {
	owners := make(map[storage.Identity]storage.UserID, len(identities))
	digests := make([]any, len(identities))
	for i, l := range identities {
		digests[i] = l.Digest()
		w.touchIdentity(l.Digest())
	}
	err := w.Read(len(identities), db.Listed(sqlIdentitiesThere, len(identities)), digests, db.EachEntry(identityColumns, func(user storage.UserID, id storage.Identity) { owners[id] = user }))
	if err != nil {
		return nil, err
	}
	results := make([]storage.Result[bool], len(identities))
	var free []storage.LinkedIdentity
	for i, l := range identities {
		owner, there := owners[l.Identity]
		switch {
		case there && owner != l.User:
			results[i].Err = fmt.Errorf("identity %w: it stands for user %s", storage.ErrKeyTaken, owner)
		case there:
			results[i].Found = true
		default:
			owners[l.Identity] = l.User
			results[i] = storage.Result[bool]{Found: true, Value: true}
			free = append(free, l)
		}
	}
	made, err := db.WriteRows(w.Tx, w.store.sql.Text(sqlLinkIdentity), free, func(args []any, l storage.LinkedIdentity) []any {
		return append(args, l.Digest(), int64(l.User), l.Issuer, l.Subject, int64(l.At))
	})
	if err == nil && made != len(free) {
		err = db.ErrAgain // another caller has linked one since the read
	}
	return results, err
}

// Identities implements [contents.Moment].
func (m moment) Identities(ctx context.Context, after string, limit int) (list []storage.LinkedIdentity, err error) {
	err = m.Scan(ctx, "shard.rows", sqlIdentitiesBehind, []any{after, limit}, db.AppendTo(&list, linkedColumns))
	return list, err
}
