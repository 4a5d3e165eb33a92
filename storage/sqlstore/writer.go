package sqlstore

import (
	"context"
	"errors"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/packed"
)

// A writer is one transaction on one shard.
type writer struct {
	*db.Tx
	store *Store

	packed packed.Flags
	locked map[storage.UserID]storage.Counts // of the owners locked so far
	made   []storage.UserID                  // owners whose counts lockCounts has made
	owed   map[storage.UserID]owed           // see owe
	change storage.Change                    // for [Store.OnCommit]

	comments []storage.CommentID // written or deleted
}

// OnCommit implements [storage.Store].
func (s *Store) OnCommit(report func(context.Context, storage.Change)) {
	s.report = report
	s.db.OnMisread(func(here bool) { report(context.Background(), storage.Change{Gap: true, Here: here}) })
}

// transact runs a write of one user or handle as one transaction on the shard that has it. If the
// user or handle moves meanwhile, its shard is looked up again, also if the transaction finds no rows: they may have been removed.
func (s *Store) transact(ctx context.Context, what string, shardOf func() int, write func(*writer) error) error {
	return s.db.Rerouted(ctx, func() error {
		shard := shardOf()
		return s.transactOn(ctx, what, shard, func(w *writer) error {
			if shardOf() != shard {
				return db.ErrMoved
			}
			return write(w)
		})
	})
}

// transactFor is transact for one user.
func (s *Store) transactFor(ctx context.Context, what string, user storage.UserID, write func(*writer) error) error {
	return s.transact(ctx, what, func() int { return s.shards.Of(user) }, write)
}

// made runs a write for a user that returns what it leaves, and whether it has changed that. If it fails, made returns neither.
func made[T any](
	ctx context.Context, run func(context.Context, string, storage.UserID, func(*writer) error) error, what string, user storage.UserID,
	write func(*writer) (T, bool, error),
) (left T, changed bool, err error) {
	err = run(ctx, what, user, func(w *writer) (err error) {
		left, changed, err = write(w)
		return err
	})
	if err != nil {
		return *new(T), false, err
	}
	return left, changed, nil
}

// changes is made for a write that returns only whether it has changed something.
func changes(
	ctx context.Context, run func(context.Context, string, storage.UserID, func(*writer) error) error, what string, user storage.UserID,
	write func(*writer) (bool, error),
) (bool, error) {
	_, changed, err := made(ctx, run, what, user, func(w *writer) (none struct{}, changed bool, err error) {
		changed, err = write(w)
		return none, changed, err
	})
	return changed, err
}

// transactOf is transactOn for a write that returns what it has done.
func transactOf[T any](ctx context.Context, s *Store, what string, shard int, write func(*writer) (T, error)) (done T, err error) {
	err = s.transactOn(ctx, what, shard, func(w *writer) (err error) {
		done, err = write(w)
		return err
	})
	return done, err
}

func (s *Store) ownerOfHandle(handle string) func() int {
	return func() int { return s.shards.OfHandle(handle) }
}

// transactOn runs a write on one shard as one transaction, see [db.DB.Transact].
func (s *Store) transactOn(ctx context.Context, what string, shard int, write func(*writer) error) error {
	var w *writer
	err := s.db.Transact(ctx, what, shard, func(tx *db.Tx) error {
		w = &writer{Tx: tx, store: s, locked: make(map[storage.UserID]storage.Counts)}
		if err := write(w); err != nil {
			return err
		}
		if err := w.payOwed(); err != nil {
			return err
		}
		return w.logBeside()
	})
	if inDoubt := errors.Is(err, db.ErrInDoubt); (err == nil || inDoubt) && s.report != nil && !w.change.IsEmpty() {
		w.change.InDoubt = inDoubt
		s.report(context.WithoutCancel(ctx), w.change)
	}
	return err
}

// touchUser notes that rows are written of which a user has one each.
func (w *writer) touchUser(id storage.UserID) { w.Touch(db.MovedRow{Kind: db.UserRows, Owner: id}) }

// hasUser returns an error if a user's rows are not the shard's to write: a user who is not found there may be
// elsewhere.
func (w *writer) hasUser(id storage.UserID) error {
	return w.Strayed(db.MovedRow{Kind: db.UserRows, Owner: id})
}

func (w *writer) touchHandle(handle string) {
	w.Touch(db.MovedRow{Kind: db.HandleRow, Handle: handle})
}

func (w *writer) touchIdentity(digest string) {
	w.Touch(db.MovedRow{Kind: db.IdentityRow, Handle: digest})
}

// touchEdges notes that rows of edges or requests are written.
func (w *writer) touchEdges(side storage.Side, edges []storage.Edge) {
	for _, e := range edges {
		p := e.Pair()
		w.Touch(db.MovedRow{Kind: db.KindOf(side), Owner: side.Owner(p), Peer: side.Peer(p)})
	}
}

func (w *writer) touchMark(p storage.Pair) {
	w.Touch(db.MovedRow{Kind: db.MarkRow, Owner: p.From, Peer: p.To})
}

// unchanged notes the owners, all locked, whose counts the transaction leaves as they were: another
// writer has written the same before, and may have been killed before it reported that.
func (w *writer) unchanged(diffs judge.Diffs) {
	if w.store.report == nil {
		return
	}
	for owner, n := range w.locked {
		_, changed := diffs[owner]
		if _, owes := w.owed[owner]; !changed && !owes {
			w.change.AddCounts(storage.UserChange{User: owner, Counts: n, Before: n.Version})
		}
	}
}

// owed is what is to be written to the counts of a user.
type owed struct {
	active  storage.Day   // it was active on
	profile *storage.User // if that has changed
}

// owe has the version of a user raised, whose counts are locked and stay as they are: by the statement that writes the next counts of the
// transaction, or at its end.
func (w *writer) owe(user storage.UserID, o owed) {
	if w.owed == nil {
		w.owed = make(map[storage.UserID]owed)
	}
	w.owed[user] = o
}

// payOwed writes what is still owed.
func (w *writer) payOwed() error {
	if len(w.owed) == 0 {
		return nil
	}
	return w.addCounts(make(judge.Diffs))
}

// raiseVersion raises the version of a user, whose counts are locked, because something beside its edges has changed.
func (w *writer) raiseVersion(user storage.UserID) {
	w.change.AddUser(user, storage.Beside)
	w.owe(user, w.owed[user])
}

// leaves notes that the transaction leaves an owner, whose counts are locked, with its counts
// changed by a difference, a new version, and a profile, nil if that has not changed.
func (w *writer) leaves(owner storage.UserID, d judge.Diff, profile *storage.User) {
	n, known := w.locked[owner]
	if !known {
		return
	}
	before := n.Version
	n.Following, n.Follower, n.Friend, n.Posts, n.Version = n.Following+d.Following, n.Follower+d.Follower, n.Friend+d.Friend, n.Posts+d.Posts, n.Version+1
	n.Favorites, n.Favorited = n.Favorites+d.Favorites, n.Favorited+d.Favorited
	if profile != nil {
		before = n.Version
	}
	w.locked[owner] = n
	if w.store.report != nil || profile != nil {
		w.change.AddCounts(storage.UserChange{User: owner, Counts: n, Before: before, Profile: profile})
	}
}
