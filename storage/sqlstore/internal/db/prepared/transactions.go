package prepared

import (
	"context"
	"database/sql/driver"
)

// transactions are how a connection begins and ends them.
//
// A MySQL session with autocommit off begins a transaction with its first statement, which saves a round
// trip for each. So a connection turns autocommit off for its first transaction, and turns it on again for
// the next statement outside of one: connections for writes have hardly any of these.
type transactions struct {
	off    bool // autocommit
	open   bool // a transaction is under way
	broken bool // a transaction could not be ended: the next must not become a part of it
}

// BeginTx implements [driver.ConnBeginTx].
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if !c.of.Implicit || o != (driver.TxOptions{}) {
		return c.connection.BeginTx(ctx, o)
	}
	if !c.off {
		if _, err := c.connection.ExecContext(ctx, "SET autocommit = 0", nil); err != nil {
			return nil, err
		}
		c.off = true
	}
	c.open = true
	return implicitTx{c}, nil
}

// commitsBySelf makes sure that a statement outside of a transaction commits by itself.
func (c *conn) commitsBySelf(ctx context.Context) error {
	if !c.off || c.open {
		return nil
	}
	_, err := c.connection.ExecContext(ctx, "SET autocommit = 1", nil)
	c.off = err != nil
	return err
}

// implicitTx is a transaction that its first statement begins.
type implicitTx struct{ *conn }

func (t implicitTx) Commit() error   { return t.end("COMMIT") }
func (t implicitTx) Rollback() error { return t.end("ROLLBACK") }

func (t implicitTx) end(how string) error {
	t.open = false
	_, err := t.connection.ExecContext(context.Background(), how, nil)
	t.broken = err != nil
	return err
}

// IsValid implements [driver.Validator].
func (c *conn) IsValid() bool {
	return !c.broken && c.born == c.of.Generation.now() && c.connection.IsValid()
}
