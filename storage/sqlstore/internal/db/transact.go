package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kith/storage"
)

// A Tx is one transaction on one shard: the statements of a write, reported to the
// observer like those of look-ups.
type Tx struct {
	DB    *DB
	Shard int

	tx   *sql.Tx
	ctx  context.Context // of this try
	what string
}

// ErrAgain asks [DB.Transact] to run the transaction again from its beginning.
var ErrAgain = errors.New("rows changed while they were being read")

// Transact runs a write on one shard as one transaction, at READ COMMITTED. When
// it loses a race for locks it runs again, a few times.
func (d *DB) Transact(ctx context.Context, what string, shard int, write func(*Tx) error) error {
	const tries = 8
	var err error
	for try := range tries {
		if try > 0 && !pause(ctx, try) {
			break
		}
		if err = d.tryTransaction(ctx, what, shard, write); err == nil {
			return nil
		}
		if !errors.Is(err, ErrAgain) && !d.Dialect.retryable(err) {
			break
		}
	}
	var unknown unansweredCommit
	inDoubt := errors.As(err, &unknown)
	err = d.Dialect.StorageError(ctx, err)
	if inDoubt {
		err = fmt.Errorf("%w: %w", storage.ErrInDoubt, err)
	}
	return fmt.Errorf("write %s on shard %d (%s): %w", what, shard, d.Shards[shard].Name, err)
}

// unansweredCommit is the error of a commit that may have gone through all the same.
type unansweredCommit struct{ error }

func (u unansweredCommit) Unwrap() error { return u.error }

func (d *DB) tryTransaction(ctx context.Context, what string, shard int, write func(*Tx) error) error {
	tx, err := d.Shards[shard].Write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := write(&Tx{DB: d, Shard: shard, tx: tx, ctx: ctx, what: what}); err != nil {
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

// Read runs a SELECT of the transaction.
func (t *Tx) Read(keys int, text string, args []any, each func(*sql.Rows) error) error {
	began := time.Now()
	err := scan(t.ctx, t.tx, text, args, each)
	t.observe(keys, began, err, text, args)
	return err
}

// Exec runs a statement that writes and returns how many rows it changed.
func (t *Tx) Exec(keys int, text string, args ...any) (int, error) {
	began := time.Now()
	result, err := t.tx.ExecContext(t.ctx, text, args...)
	t.observe(keys, began, err, text, args)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

func (t *Tx) observe(keys int, began time.Time, err error, text string, args []any) {
	t.DB.cfg.OnStatement(t.ctx, Statement{t.what, t.Shard, keys, time.Since(began), err, text, args})
}
