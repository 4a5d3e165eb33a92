package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// A Tx is one transaction on one shard: the statements of a write, reported to the
// observer like those of look-ups.
type Tx struct {
	DB    *DB
	Shard int

	tx       *sql.Tx
	ctx      context.Context // of this try
	what     string
	assigned *storage.Assignment // as long as the transaction lasts, as far as this shard is concerned
	leaving  []MovedRow          // those written whose buckets are being copied to another shard
	strayed  error               // why a row may not be written: [ErrMoved] or [ErrCopied]
}

// ErrAgain asks [DB.Transact] to run the transaction again from its beginning.
var ErrAgain = errors.New("rows changed while they were being read")

// errEpoch means that the buckets of the shard have changed since the map was read.
var errEpoch = fmt.Errorf("%w: its buckets have changed", storage.ErrUnavailable)

// ErrMoved is the error of a write to buckets that are not the shard's, or are about to move: after
// a [DB.Refresh] it may find another shard. [storage.ErrUnavailable].
var ErrMoved = fmt.Errorf("%w: its bucket is being moved to another shard", storage.ErrUnavailable)

// ErrCopied is the error of a write to a store that has been copied. [storage.ErrUnavailable].
var ErrCopied = fmt.Errorf("%w: %w", storage.ErrUnavailable, storage.ErrCopied)

// ErrInDoubt means that no answer to a commit came: the rows may be there, may not be, or may appear soon. It comes with another
// error that says why.
var ErrInDoubt = errors.New("commit in doubt")

// Transact runs a write on one shard as one transaction, at READ COMMITTED. When
// it loses a race for locks it runs again, a few times. [ErrMoved], [ErrCopied].
func (d *DB) Transact(ctx context.Context, what string, shard int, write func(*Tx) error) error {
	const tries = 8
	n := d.Shard(shard)
	if err := n.isSilent(); err != nil {
		err = fmt.Errorf("write %s on shard %d (%s): %w", what, shard, n.Name, err)
		d.cfg.OnStatement(ctx, Statement{Lookup: what, Shard: shard, Keys: 1, Err: err}) // as one that has failed
		return err
	}
	var err error
	for try := range tries {
		if try > 0 && !errors.Is(err, errEpoch) && !pause(ctx, try) {
			break
		}
		if err = d.tryTransaction(ctx, what, shard, write); err == nil {
			return nil
		}
		if errors.Is(err, errEpoch) {
			_ = d.Refresh(ctx) // of this shard, if any; else it is tried again
			continue
		}
		// A connection that had been lost before may show it only at the first statement: then nothing
		// was sent.
		if !errors.Is(err, ErrAgain) && !errors.Is(err, driver.ErrBadConn) && !d.Dialect.retryable(err) {
			break
		}
	}
	_, inDoubt := errors.AsType[unansweredCommit](err)
	err = d.Dialect.StorageError(ctx, err)
	if inDoubt {
		err = fmt.Errorf("%w: %w", ErrInDoubt, err)
	}
	return fmt.Errorf("write %s on shard %d (%s): %w", what, shard, n.Name, err)
}

// Exclusive is Transact for movers of buckets: it does not hold the buckets.
func (d *DB) Exclusive(ctx context.Context, what string, shard int, write func(*Tx) error) error {
	return d.persist(ctx, what, shard, func() error { return d.inTx(ctx, what, shard, d.Shard(shard).Write, ifAdmitted(write)) })
}

// ExclusiveShortWait is Exclusive for statements whose locks all writers of a shard wait for: it waits for locks
// no longer than a second, and is tried again.
func (d *DB) ExclusiveShortWait(ctx context.Context, what string, shard int, write func(*Tx) error) error {
	if d.Dialect == sqliteDialect {
		return d.Exclusive(ctx, what, shard, write)
	}
	return d.persist(ctx, what, shard, func() error {
		conn, err := d.Shard(shard).Write.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		var patience int
		if err := conn.QueryRowContext(ctx, "SELECT @@innodb_lock_wait_timeout").Scan(&patience); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, "SET innodb_lock_wait_timeout = 1"); err != nil {
			return err
		}
		defer func() {
			if _, err := conn.ExecContext(context.WithoutCancel(ctx), "SET innodb_lock_wait_timeout = ?", patience); err != nil {
				_ = conn.Raw(func(any) error { return driver.ErrBadConn })
			}
		}()
		return d.inTx(ctx, what, shard, conn, ifAdmitted(write))
	})
}

// persist runs try again if it has lost a race for locks.
func (d *DB) persist(ctx context.Context, what string, shard int, try func() error) error {
	const tries = 20
	var err error
	for n := range tries {
		if n > 0 && !pause(ctx, min(n, 5)) {
			break
		}
		if err = try(); err == nil || !d.Dialect.retryable(err) {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("%s on shard %d (%s): %w", what, shard, d.Shard(shard).Name, d.Dialect.StorageError(ctx, err))
	}
	return err
}

// unansweredCommit is the error of a commit that may have gone through all the same.
type unansweredCommit struct{ error }

func (u unansweredCommit) Unwrap() error { return u.error }

func (d *DB) tryTransaction(ctx context.Context, what string, shard int, write func(*Tx) error) error {
	return d.inTx(ctx, what, shard, d.Shard(shard).Write, func(t *Tx) error {
		if err := t.holdBuckets(); err != nil {
			return err
		}
		if err := write(t); err != nil {
			return err
		}
		return t.noteMoved()
	})
}

// inTx runs a transaction.
func (d *DB) inTx(ctx context.Context, what string, shard int, conn interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}, run func(*Tx) error) error {
	defer storage.Wait(ctx)()
	if err := d.Shard(shard).inUse(); err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := run(&Tx{DB: d, Shard: shard, tx: tx, ctx: ctx, what: what, assigned: d.Map.Now()}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return unansweredCommit{err}
	}
	return nil
}

// pause waits before another try, longer each time; false when ctx ends first.
func pause(ctx context.Context, try int) bool {
	longest := 5 * time.Millisecond << try
	return sleep.For(ctx, rand.N(longest)) == nil
}

// Read runs a SELECT of the transaction.
func (t *Tx) Read(keys int, text string, args []any, each func(*sql.Rows) error) error {
	began := time.Now()
	rows, err := t.DB.Dialect.scan(t.ctx, t.tx, t.DB.commented(t.ctx, text), args, each)
	t.observe(keys, rows, began, err, text, args)
	return err
}

// Exec runs a statement that writes and returns how many rows it changed.
func (t *Tx) Exec(keys int, text string, args ...any) (int, error) {
	began := time.Now()
	result, err := t.tx.ExecContext(t.ctx, t.DB.commented(t.ctx, text), args...)
	t.observe(keys, 0, began, err, text, args)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// ReadOne reads the one row that a look-up finds, if it finds one.
func (t *Tx) ReadOne(text string, args []any, into ...any) (found bool, err error) {
	err = t.Read(1, text, args, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(into...)
	})
	return found, err
}

// ReadChunks runs a look-up of keys, at most so many at a time.
func ReadChunks[K any](t *Tx, keys []K, atMost int, statement func([]K) (text string, args []any), each func(*sql.Rows) error) error {
	for chunk := range slices.Chunk(keys, atMost) {
		text, args := statement(chunk)
		if err := t.Read(len(chunk), text, args, each); err != nil {
			return err
		}
	}
	return nil
}

// WriteRows runs a statement that writes a list of rows, as often as it takes, and returns how many rows it changed.
func WriteRows[T any](t *Tx, text string, rows []T, arguments func(args []any, row T) []any) (changed int, err error) {
	for chunk := range slices.Chunk(rows, t.DB.Dialect.MaxRows) {
		var args []any
		for _, row := range chunk {
			args = arguments(args, row)
		}
		n, err := t.Exec(len(chunk), Listed(text, len(chunk)), args...)
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// Label says what the statements that follow are for, where several writes share the transaction.
func (t *Tx) Label(what string) { t.what = what }

func (t *Tx) observe(keys, rows int, began time.Time, err error, text string, args []any) {
	t.DB.observe(t.ctx, Statement{t.what, t.Shard, keys, rows, time.Since(began), err, text, args})
}
