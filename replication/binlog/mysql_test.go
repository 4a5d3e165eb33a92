package binlog

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kith/internal/binlogtest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/replication/binlog/replica"
	"kith/storage"
)

// MySQL frames transactions differently from MariaDB: BEGIN and COMMIT are events, a statement without
// BEGIN is a transaction of its own, and compressed transactions are one event. The events are made
// here, so that the unusual ones come in a known order.
type mysqlLog struct {
	t *testing.T
	*assembler
	number int64
}

var source = uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562")

func newMySQLLog(t *testing.T) *mysqlLog {
	return &mysqlLog{t: t, assembler: &assembler{
		server: "db:3306", databases: []string{"kith"},
	}}
}

// events passes events to the assembler and returns the transactions that they make.
func (l *mysqlLog) events(list ...[]byte) (done []*transaction) {
	l.t.Helper()
	for _, raw := range list {
		tx, err := l.take(raw)
		must.OK(l.t, err)
		if tx != nil {
			done = append(done, tx)
		}
	}
	return done
}

// take passes one event, or a table map and rows.
func (l *mysqlLog) take(raw []byte) (done *transaction, err error) {
	l.t.Helper()
	for len(raw) > 0 && err == nil {
		size := binary.LittleEndian.Uint32(raw[9:])
		e, failed := replica.ParseEvent(raw[:size])
		must.OK(l.t, failed)
		done, err = l.assembler.add(e)
		raw = raw[size:]
	}
	return done, err
}

func (l *mysqlLog) gtid() []byte {
	l.number++
	return binlogtest.GTID(source, l.number)
}

var (
	query = binlogtest.Query
	xid   = binlogtest.XID
)

// followings is the map of a table, whose columns are in another order than migrations make.
func followings(nameless bool) []byte {
	return binlogtest.Table(1, "following", nameless, binlogtest.Column{Name: "note", Type: 3}, binlogtest.Column{Name: "to_user_id", Type: 8},
		binlogtest.Column{Name: "from_user_id", Type: 8}, binlogtest.Column{Name: "update_time", Type: 8}, binlogtest.Column{Name: "type", Type: 1, Unsigned: true})
}

func inserts(rows ...[]byte) []byte {
	return slices.Concat(followings(false), binlogtest.Rows(30, 1, 5, [][]byte{{0b11111}}, rows...))
}

func line(from, to uint64) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64([]byte{1}, to) // without a note
	return append(le.AppendUint64(le.AppendUint64(b, from), 8_000_000), 1)
}

func TestMySQLTransactions(t *testing.T) {
	l := newMySQLLog(t)
	done := l.events(
		l.gtid(), query("BEGIN"), inserts(line(1, 2), line(1, 3)), inserts(line(2, 1)), xid(),
		l.gtid(), query("ALTER TABLE following ADD COLUMN x INT"),
		l.gtid(), query("BEGIN"), inserts(line(5, 6)), query("COMMIT"),
		l.gtid(), query("BEGIN"), query("SAVEPOINT a"), inserts(line(7, 8)), query("ROLLBACK TO `a`"), inserts(line(7, 9)), xid(),
		l.gtid(), query("BEGIN"), inserts(line(9, 9)), query("ROLLBACK"),
		l.gtid(), query("BEGIN"), query("CREATE TABLE x (id INT) START TRANSACTION"), xid(),
		l.gtid(), query("XA START X'78',X'',1"), query("XA END X'78',X'',1"), binlogtest.Event(38),
		l.gtid(), query("XA COMMIT X'78',X'',1"),
		l.gtid(), binlogtest.Payload(query("BEGIN"), inserts(line(20, 21)), xid()),
	)
	want := [][]storage.Pair{{{From: 1, To: 2}, {From: 1, To: 3}, {From: 2, To: 1}}, {}, {{From: 5, To: 6}}, {{From: 7, To: 9}}, {}, {}, {}, {}, {{From: 20, To: 21}}}
	must.Equal(t, "transactions", len(done), len(want))
	for i, tx := range done {
		check.That(t, tx.gtid.Number == uint64(i+1) && tx.gtid.Source == source, "transaction %d is %s", i+1, tx.gtid)
		if len(tx.rows) != len(want[i]) {
			t.Errorf("transaction %d has the rows %v, not %v", i+1, tx.rows, want[i])
			continue
		}
		for k, r := range tx.rows {
			if e := r.Edge; r.Side != storage.Forward || e.Pair() != want[i][k] || e.Type != storage.Following || e.UpdateTime != 8_000_000 {
				t.Errorf("transaction %d has the rows %v, not %v", i+1, tx.rows, want[i])
			}
		}
	}
	check.That(t, done[0].committed == 8_000_000 && done[1].committed == 7_000_000, "committed at %d and %d", done[0].committed, done[1].committed)
}

func TestMySQLStops(t *testing.T) {
	for name, list := range map[string][][]byte{
		"xa":             {query("XA START X'78',X'',1"), inserts(line(1, 2))},
		"statement":      {query("BEGIN"), query("UPDATE following SET type = 0")},
		"no names":       {query("BEGIN"), followings(true), binlogtest.Rows(30, 1, 5, [][]byte{{0b11111}}, line(1, 2))},
		"unknown column": {query("BEGIN"), binlogtest.Table(1, "following", false, binlogtest.Column{Name: "from_user_id", Type: 8}, binlogtest.Column{Name: "odd", Type: 99})},
		"broken payload": {binlogtest.PayloadOf([]byte("no zstd"), 100)},
		"partial rows":   {query("BEGIN"), followings(false), binlogtest.Rows(30, 1, 5, [][]byte{{0b11101}}, []byte{0, 0, 0, 0, 0})},
	} {
		l := newMySQLLog(t)
		l.events(l.gtid())
		var err error
		for _, e := range list {
			if _, err = l.take(e); err != nil {
				break
			}
		}
		var stop *StopError
		check.That(t, errors.As(err, &stop) && stop.GTID == source.String()+":1", "%s: %v", name, err)
	}
}

// What a newer server may send is not passed over.
func TestUnknownEventsStop(t *testing.T) {
	_, err := replica.ParseEvent(binlogtest.Event(99))
	var stop *StopError
	check.That(t, errors.As((&server{name: "db:3306"}).streamError(err), &stop) && stop.Remedy != "" && strings.Contains(stop.What, "kind 99"), "%v", err)
}

// An event that cannot be read is passed over if its transaction is to be skipped, and the next transaction is read.
func TestUnreadableTransactionsAreSkipped(t *testing.T) {
	l := newMySQLLog(t)
	l.skip = []string{source.String() + ":1", source.String() + ":2"}
	odd := binlogtest.Table(1, "following", false, binlogtest.Column{Name: "odd", Type: 99})
	done := l.events(l.gtid(), binlogtest.PayloadOf([]byte("no zstd"), 100),
		l.gtid(), query("BEGIN"), odd, binlogtest.Rows(30, 1, 1, [][]byte{{1}}, []byte{0, 0}), xid(),
		l.gtid(), query("BEGIN"), inserts(line(1, 2)), xid())
	check.That(t, len(done) == 3 && done[0].skips == 1 && done[1].skips == 1 && len(done[2].rows) == 1, "%+v", done)
	_, err := l.take(slices.Concat(l.gtid(), odd))
	check.That(t, err != nil, "the same table map does not stop the next transaction")
}

// A transaction of very many rows is not kept in memory: it stops replication, or is passed over.
func TestATransactionOfVeryManyRowsStops(t *testing.T) {
	l := newMySQLLog(t)
	many := func() {
		l.events(l.gtid(), query("BEGIN"), inserts(line(1, 2)))
		l.open.rows = slices.Grow(l.open.rows, mostChanged)[:mostChanged-1]
		l.events(inserts(line(1, 3)))
		check.Equal(t, "rows that are kept", len(l.open.rows), mostChanged)
	}
	many()
	_, err := l.take(inserts(line(1, 4)))
	var stop *StopError
	check.That(t, errors.As(err, &stop) && stop.GTID == source.String()+":1" && strings.Contains(stop.Remedy, "--skip="+stop.GTID), "%v", err)
	l = newMySQLLog(t)
	l.skip = []string{source.String() + ":1"}
	many()
	done := l.events(inserts(line(1, 4)), inserts(line(1, 5)), xid(), l.gtid(), query("BEGIN"), inserts(line(1, 6)), xid())
	check.That(t, len(done) == 2 && done[0].skips == 1 && done[0].change().Gap && len(done[0].rows) == 0 && len(done[1].rows) == 1, "%d transactions, %+v", len(done), done[len(done)-1])
}

// A transaction that a crash has cut off in the binlog was not committed.
func TestCrashedTransactionIsForgotten(t *testing.T) {
	l := newMySQLLog(t)
	done := l.events(l.gtid(), query("BEGIN"), inserts(line(1, 2)),
		binlogtest.Format(false),
		l.gtid(), query("BEGIN"), inserts(line(3, 4)), xid())
	check.That(t, len(done) == 1 && len(done[0].rows) == 1 && done[0].rows[0].Edge.From == 3, "%+v", done)
	l.events(l.gtid(), query("BEGIN"))
	_, err := l.take(l.gtid())
	check.That(t, err != nil, "a transaction within another is taken for sense")
}

func TestPositions(t *testing.T) {
	for flavor, c := range map[string]struct {
		start   string
		next    []string
		before  string
		all     string
		foreign string
	}{
		mariaDB: {"0-1-5,1-9-3", []string{"0-1-6", "0-2-7"}, "0-1-6,1-9-3", "0-2-7,1-9-3", "0-2-8"},
		mySQL: {source.String() + ":1-5", []string{source.String() + ":6", source.String() + ":tag:1"},
			source.String() + ":1-6", source.String() + ":1-6:tag:1", source.String() + ":7"},
	} {
		set, err := replica.ParseSet(c.start)
		must.OK(t, err)
		p := position{before: set}
		for i, text := range c.next {
			id, err := replica.ParseGTID(text)
			must.That(t, err == nil && id.String() == text, "%q is read as %s, %v", text, id, err)
			p.advance(id, uint32(i))
		}
		saved := checkpoint{Flavor: flavor, Before: p.before.String(), Last: p.last.String(), Print: p.print}
		loaded, err := saved.position()
		must.OK(t, err)
		for _, p := range []position{p, loaded} {
			if p.before.String() != c.before || p.set().String() != c.all || p.print != 1 {
				t.Errorf("%s: before %s, all %s", flavor, p.before, p.set())
			}
			other, err := replica.ParseSet(c.foreign)
			check.That(t, err == nil && !p.set().Contains(other) && p.set().Contains(set), "%s: %s in %s", flavor, other, p.set())
		}
	}
}
