package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"

	"kith/internal/must"
)

var errStatement = errors.New("the statement fails")

// faults makes one statement of a store fail, or return a row that cannot be read.
type faults struct {
	mu         sync.Mutex
	armed      bool
	at         int  // the number of the statement, from 1
	brokenRow  bool // the statement returns a row that cannot be read
	statements int  // run so far
	hit        bool
}

func (f *faults) arm(at int, brokenRow bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.at, f.brokenRow, f.statements, f.hit = true, at, brokenRow, 0, false
}

func (f *faults) disarm() (statements int, hit bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = false
	return f.statements, f.hit
}

// next counts a statement and reports whether it is the chosen one.
func (f *faults) next() (isIt bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.statements++
	return f.armed && f.statements == f.at
}

func (f *faults) fails() bool {
	isIt := f.next()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hit = f.hit || isIt && !f.brokenRow
	return isIt && !f.brokenRow
}

// mayCommit is false for a transaction whose statement had no row that could be broken. Such a transaction
// must leave the store unchanged.
func (f *faults) mayCommit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.armed || !f.brokenRow || f.hit || f.statements < f.at
}

// pool is a pool of connections with faults.
func (f *faults) pool(t *testing.T, path, options string) *sql.DB {
	t.Helper()
	name := "file:" + path + "?_pragma=busy_timeout(5000)" + options
	plain, err := sql.Open("sqlite", name)
	must.OK(t, err)
	return sql.OpenDB(faultyConnector{plain.Driver(), name, f})
}

type faultyConnector struct {
	driver driver.Driver
	name   string
	faults *faults
}

func (c faultyConnector) Driver() driver.Driver { return c.driver }

func (c faultyConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.name)
	if err != nil {
		return nil, err
	}
	return faultyConn{conn.(connection), c.faults}, nil
}

type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
}

type faultyConn struct {
	connection
	faults *faults
}

func (c faultyConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if c.faults.fails() {
		return nil, errStatement
	}
	return c.connection.ExecContext(ctx, text, args)
}

func (c faultyConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	isIt := c.faults.next()
	c.faults.mu.Lock()
	broken := c.faults.brokenRow
	c.faults.hit = c.faults.hit || isIt && !broken
	c.faults.mu.Unlock()
	if isIt && !broken {
		return nil, errStatement
	}
	rows, err := c.connection.QueryContext(ctx, text, args)
	if isIt && err == nil && text != sqlExistingUsers { // for these it matters only whether a row exists
		rows = brokenRows{rows, c.faults}
	}
	return rows, err
}

func (c faultyConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.connection.BeginTx(ctx, options)
	return faultyTx{tx, c.faults}, err
}

type faultyTx struct {
	driver.Tx
	faults *faults
}

func (t faultyTx) Commit() error {
	if !t.faults.mayCommit() {
		return errors.Join(errStatement, t.Rollback())
	}
	return t.Tx.Commit()
}

// brokenRows have values of a type that nothing can read.
type brokenRows struct {
	driver.Rows
	faults *faults
}

func (r brokenRows) Next(row []driver.Value) error {
	err := r.Rows.Next(row)
	if err != nil {
		return err
	}
	for i := range row {
		row[i] = struct{}{}
	}
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.hit = true
	return nil
}
