package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kith/storage"
)

// A writer is one transaction on one shard: the statements of a write, reported
// to the observer like those of look-ups.
type writer struct {
	*sql.Tx
	store *Store
	shard int
	ctx   context.Context // of this try
	what  string

	packed map[storage.UserID]int64 // the flags of the owners locked so far, where they have any
}

// errAgain asks transact to run the transaction again from its beginning.
var errAgain = fmt.Errorf("rows changed while they were being read")

// transact runs a write on one shard as one transaction, at READ COMMITTED. When
// it loses a race for locks it runs again, a few times.
func (s *Store) transact(ctx context.Context, what string, shard int, write func(*writer) error) error {
	const tries = 8
	var err error
	for try := range tries {
		if try > 0 && !pause(ctx, try) {
			break
		}
		if err = s.tryTransaction(ctx, what, shard, write); err == nil {
			return nil
		}
		if err != errAgain && !s.sql.retryable(err) {
			break
		}
	}
	var unknown unansweredCommit
	inDoubt := errors.As(err, &unknown)
	err = s.sql.storageError(ctx, err)
	if inDoubt {
		err = fmt.Errorf("%w: %w", storage.ErrInDoubt, err)
	}
	return fmt.Errorf("write %s on shard %d (%s): %w", what, shard, s.shards[shard].name, err)
}

// unansweredCommit is the error of a commit that may have gone through all the same.
type unansweredCommit struct{ error }

func (u unansweredCommit) Unwrap() error { return u.error }

func (s *Store) tryTransaction(ctx context.Context, what string, shard int, write func(*writer) error) error {
	tx, err := s.shards[shard].write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := write(&writer{Tx: tx, store: s, shard: shard, ctx: ctx, what: what}); err != nil {
		return err
	}
	storage.Committing(ctx)
	if err := tx.Commit(); err != nil {
		return unansweredCommit{err}
	}
	return nil
}

// pause waits before another try, longer each time; false when ctx ends first.
func pause(ctx context.Context, try int) bool {
	longest := 5 * time.Millisecond << try
	select {
	case <-ctx.Done():
		return false
	case <-time.After(rand.N(longest)):
		return true
	}
}

// read runs a SELECT of the transaction.
func (w *writer) read(keys int, text string, args []any, each func(*sql.Rows) error) error {
	began := time.Now()
	err := scan(w.ctx, w.Tx, text, args, each)
	w.observe(keys, began, err, text, args)
	return err
}

// exec runs a statement that writes and returns how many rows it changed.
func (w *writer) exec(keys int, text string, args ...any) (int, error) {
	began := time.Now()
	result, err := w.ExecContext(w.ctx, text, args...)
	w.observe(keys, began, err, text, args)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

func (w *writer) observe(keys int, began time.Time, err error, text string, args []any) {
	w.store.cfg.OnStatement(w.ctx, Statement{w.what, w.shard, keys, time.Since(began), err, text, args})
}
