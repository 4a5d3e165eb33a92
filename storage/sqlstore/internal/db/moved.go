package db

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"kith/storage"
)

// A transaction holds the buckets of its shard as they are, by a shared lock on the shard's epoch,
// and reports before its commit which rows it has written. If a row is in a bucket that is no longer
// the shard's, the transaction fails with [ErrMoved]. If the row's bucket is being copied, its key is
// noted in the same transaction, so that the copy is repaired. So a gateway that has missed a move
// cannot write to buckets of another shard.

// RowKind says to which table, or tables, a row that moves belongs.
type RowKind uint8

// The kinds below are those of the sides of users, 0 to 3: rows of edges and requests. A note may have been
// written by a program of another version, so kinds keep their numbers.
const (
	MarkRow     = RowKind(4) // of edge_marks; 5 is free
	UserRows    = RowKind(6) // of users, user_words, user_counts, seen, import_part, user_states and moderation_log
	HandleRow   = RowKind(7)
	PostRows    = RowKind(8)  // of post and post_counts; the peer is the number of the post
	CommentRow  = RowKind(9)  // the peer is the number of the comment
	favoriteRow = RowKind(10) // of favorite; the peer is the author: all favorites of the author's posts are meant
	inboxRow    = RowKind(11) // of favorite_inbox; the peer is the user: all favorites of the user are meant
	IdentityRow = RowKind(12) // its digest is in the place of a handle
	relationRow = RowKind(13) // of relation; the peer is the other end: all edges to it are meant
	relatedRow  = RowKind(14) // of relation_inbox; the peer is the other end, too
	CountRow    = RowKind(15) // of relation_counts; the peer is the number of the kind
)

// ByText reports whether the rows are found by a text, in [MovedRow.Handle], and have no owner.
func (k RowKind) ByText() bool { return k == HandleRow || k == IdentityRow }

// KindOf is the kind of the rows of a side.
func KindOf(side storage.Side) RowKind {
	return [...]RowKind{0, 1, 2, 3, storage.Favorites: favoriteRow, storage.FavoriteInbox: inboxRow, storage.Relations: relationRow, storage.RelationInbox: relatedRow}[side]
}

// A MovedRow names rows.
type MovedRow struct {
	Kind        RowKind
	Owner, Peer storage.UserID // Peer is 0 if all of the owner are meant
	Handle      string         // of a kind that is [RowKind.ByText]
}

// Bucket is the bucket in which the rows are.
func (r MovedRow) Bucket() int {
	if r.Kind.ByText() {
		return storage.BucketOfHandle(r.Handle)
	}
	return r.Owner.Bucket()
}

func compareMoved(a, b MovedRow) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Handle, b.Handle))
}

const sqlNoteMoved = `
INSERT INTO kith_moved_rows (kind, owner, peer, handle)
VALUES (?, ?, ?, ?)`

// holdBuckets keeps the shard's buckets as they are until the transaction ends, or returns [errEpoch]
// if they are not as the map says. TiDB has no shared locks; a store on it does not move.
func (t *Tx) holdBuckets() error {
	if !t.DB.Dialect.Moves {
		return nil
	}
	var epoch int64
	began := time.Now()
	err := t.tx.QueryRowContext(t.ctx, t.DB.commented(t.ctx, sqlEpoch), 1).Scan(&epoch)
	t.observe(1, 1, began, err, sqlEpoch, []any{1})
	if err == nil && epoch != t.assigned.Epoch(t.Shard) {
		err = errEpoch
	}
	return restored(err)
}

// Touch says that the transaction writes rows, or would write them if they were not already as they
// should be.
func (t *Tx) Touch(row MovedRow) {
	if err := t.Strayed(row); err != nil {
		t.strayed = err
	} else if _, state := t.assigned.Owner(row.Bucket()); ClaimState(state) == Leaving {
		t.leaving = append(t.leaving, row)
	}
}

// Strayed is why a row may not be written: [ErrMoved] or [ErrCopied], or nil.
func (t *Tx) Strayed(row MovedRow) error {
	switch owner, state := t.assigned.Owner(row.Bucket()); {
	case owner != t.Shard || ClaimState(state) == Closed:
		return ErrMoved
	case ClaimState(state) == Left: // to another store
		return ErrCopied
	}
	return nil
}

// noteMoved checks that the rows written are the shard's, and notes those that are being copied.
func (t *Tx) noteMoved() error {
	if t.strayed != nil {
		return t.strayed
	}
	slices.SortFunc(t.leaving, compareMoved)
	_, err := WriteRows(t, sqlNoteMoved, slices.Compact(t.leaving), func(args []any, row MovedRow) []any {
		return append(args, int64(row.Kind), int64(row.Owner), int64(row.Peer), row.Handle)
	})
	return err
}

const (
	// maxMove is how long a write waits for buckets that are being moved.
	maxMove = 10 * time.Second

	// GivenUp is the wait after which the mover must have died: a mover lets writes wait for less
	// than that.
	GivenUp = 3 * time.Second
)

// Rerouted runs a write again, with a new map, as long as it fails with [ErrMoved].
func (d *DB) Rerouted(ctx context.Context, write func() error) error {
	began := time.Now()
	for {
		err := write()
		if !errors.Is(err, ErrMoved) || !d.awaitMap(ctx, began) {
			return err
		}
	}
}

// awaitMap refreshes the map after a moment. It returns false if a write has waited too long since
// it began, or the context has ended. A move that has stopped is rescued.
func (d *DB) awaitMap(ctx context.Context, began time.Time) bool {
	waited := time.Since(began)
	if waited > maxMove || !pause(ctx, 2) {
		return false
	}
	if waited > GivenUp && d.Rescue != nil {
		d.Rescue(ctx)
	}
	_ = d.Refresh(ctx) // the write fails again, and says so
	return ctx.Err() == nil
}

// ReroutedAll runs a write of n elements, those at some indexes at a time, and again for those whose
// results are [ErrMoved].
func ReroutedAll[V any](ctx context.Context, d *DB, n int, write func(at []int) []storage.Result[V]) []storage.Result[V] {
	at := storage.Indexes(n)
	results := write(at)
	for began := time.Now(); ; {
		at = at[:0]
		for i, r := range results {
			if r.Err != nil && errors.Is(r.Err, ErrMoved) {
				at = append(at, i)
			}
		}
		if len(at) == 0 || !d.awaitMap(ctx, began) {
			break
		}
		for j, r := range write(at) {
			results[at[j]] = r
		}
	}
	return results
}
