// Package prepared makes connections to a database keep statements prepared that they repeat: the
// server need not parse these again, and answers in binary. On MariaDB a look-up of a user by key
// takes a third of the time, one of 50 edges half.
//
// database/sql does that only for statements that the program prepares itself, each on every
// connection, permanently. Here a connection prepares a statement when it is asked for it the
// second time, and forgets the one that it has not been asked for for the longest time.
package prepared

import (
	"context"
	"database/sql/driver"
	"hash/maphash"
	"strings"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Longest is how many arguments a statement may have to be kept when it comes the second time: larger statements mostly have
// many sizes, and are rarely repeated. They are kept when they have come often: those of an import.
const Longest = 256

// Once begins statements that come only once, because of what their comment says.
const Once = "/* "

const (
	// most is how many statements a connection keeps. MySQL allows 16,382 in all, for
	// all connections to a server, by default.
	most = 64
	// seen is how many texts a connection counts that it does not keep.
	seen = 256
	// often is how often a large statement has to come.
	often = 8
	// refusals is how often a server may refuse before it is no longer asked.
	refusals = 8
)

var seed = maphash.MakeSeed()

// Database describes the database that connections lead to.
type Database struct {
	// Server: it forgets a connection's statements with the connection.
	Server bool
	// Implicit: with autocommit off, a transaction begins with its first statement, so connections begin
	// theirs like that.
	Implicit bool
	// Text is how a statement is written for the driver; nil: as it came.
	Text func(string) string
	// Generation, if there is one, is that of the connections of this and other connectors.
	Generation *Generation
}

// Connector opens connections that keep statements.
func Connector(inner driver.Connector, of Database) driver.Connector {
	return connector{inner, of}
}

type connector struct {
	driver.Connector
	of Database
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	born := c.of.Generation.now()
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	whole, ok := inner.(connection)
	if !ok {
		return inner, nil
	}
	kept, err := simplelru.NewLRU(most, func(_ string, s statement) { _ = s.Close() }) // the connection reports its end by itself
	return &conn{connection: whole, kept: kept, came: map[uint64]int{}, of: c.of, born: born}, err
}

// connection is what the drivers' connections can do.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// statement is what the drivers' statements can do.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// conn is used by one goroutine at a time, as connections are.
type conn struct {
	connection

	kept *simplelru.LRU[string, statement] // by their texts
	came map[uint64]int                    // how often other texts came, by their hashes: large texts would take megabytes
	no   int                               // how often the server has refused to prepare

	of   Database
	born int64 // the generation
	transactions
}

// CheckNamedValue implements [driver.NamedValueChecker] as the driver does.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.connection.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// QueryContext implements [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (_ driver.Rows, err error) {
	defer func() { c.of.Generation.hear(err) }()
	if err := c.commitsBySelf(ctx); err != nil {
		return nil, err
	}
	if s := c.prepared(ctx, text, len(args)); s != nil {
		return s.QueryContext(ctx, args)
	}
	return c.connection.QueryContext(ctx, c.written(text), args)
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (_ driver.Result, err error) {
	defer func() { c.of.Generation.hear(err) }()
	if err := c.commitsBySelf(ctx); err != nil {
		return nil, err
	}
	if s := c.prepared(ctx, text, len(args)); s != nil {
		return s.ExecContext(ctx, args)
	}
	return c.connection.ExecContext(ctx, c.written(text), args)
}

// prepared returns the statement of a text, nil if the text is to be sent without preparing it.
func (c *conn) prepared(ctx context.Context, text string, args int) statement {
	if kept, ok := c.kept.Get(text); ok {
		return kept
	}
	if args == 0 || c.no >= refusals || strings.HasPrefix(text, Once) {
		return nil
	}
	wanted := 2
	if args > Longest {
		wanted = often
	}
	hash := maphash.String(seed, text)
	if c.came[hash]+1 < wanted {
		if len(c.came) == seen {
			clear(c.came)
		}
		c.came[hash]++
		return nil
	}
	made, err := c.PrepareContext(ctx, c.written(text))
	if err != nil {
		c.no++ // there are too many, or the statement is wrong; then its answer will say so
		return nil
	}
	whole, ok := made.(statement)
	if !ok {
		_ = made.Close()
		c.no++
		return nil
	}
	delete(c.came, hash)
	c.kept.Add(text, whole)
	return whole
}

func (c *conn) written(text string) string {
	if c.of.Text == nil {
		return text
	}
	return c.of.Text(text)
}

// Close implements [driver.Conn].
func (c *conn) Close() error {
	if !c.of.Server {
		c.kept.Purge()
	}
	return c.connection.Close()
}

// Location is the connector of a driver that has none of its own: it opens a name.
func Location(d driver.Driver, name string) driver.Connector { return location{d, name} }

type location struct {
	driver driver.Driver
	name   string
}

func (l location) Connect(context.Context) (driver.Conn, error) { return l.driver.Open(l.name) }
func (l location) Driver() driver.Driver                        { return l.driver }
