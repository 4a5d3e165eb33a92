package binlog

import (
	"errors"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/uuid"

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
func (l *mysqlLog) events(list ...*replication.BinlogEvent) (done []*transaction) {
	l.t.Helper()
	for _, e := range list {
		tx, err := l.assembler.add(e.Header, e.Event, nil, []byte{byte(e.Header.EventType)})
		if err != nil {
			l.t.Fatal(err)
		}
		if tx != nil {
			done = append(done, tx)
		}
	}
	return done
}

func event(kind replication.EventType, e replication.Event) *replication.BinlogEvent {
	return &replication.BinlogEvent{Header: &replication.EventHeader{EventType: kind, Timestamp: 100}, Event: e}
}

func (l *mysqlLog) gtid() *replication.BinlogEvent {
	l.number++
	return event(replication.GTID_EVENT, &replication.GTIDEvent{SID: source[:], GNO: l.number, OriginalCommitTimestamp: 7_000_000})
}

func query(text string) *replication.BinlogEvent {
	return event(replication.QUERY_EVENT, &replication.QueryEvent{Schema: []byte("kith"), Query: []byte(text)})
}

func xid() *replication.BinlogEvent {
	return event(replication.XID_EVENT, &replication.XIDEvent{XID: 1})
}

func inserts(values ...[]any) *replication.BinlogEvent {
	return event(replication.WRITE_ROWS_EVENTv2, &replication.RowsEvent{
		Table: &replication.TableMapEvent{
			Schema: []byte("kith"), Table: []byte("following"),
			ColumnName: [][]byte{[]byte("note"), []byte("to_user_id"), []byte("from_user_id"), []byte("update_time"), []byte("type")},
		},
		Rows:           values,
		SkippedColumns: make([][]int, len(values)),
	})
}

func row(from, to int64) []any { return []any{nil, to, from, int64(8_000_000), uint8(1)} }

func TestMySQLTransactions(t *testing.T) {
	l := newMySQLLog(t)
	done := l.events(
		l.gtid(), query("BEGIN"), inserts(row(1, 2), row(1, 3)), inserts(row(2, 1)), xid(),
		l.gtid(), query("ALTER TABLE following ADD COLUMN x INT"),
		l.gtid(), query("BEGIN"), inserts(row(5, 6)), query("COMMIT"),
		l.gtid(), query("BEGIN"), query("SAVEPOINT a"), inserts(row(7, 8)), query("ROLLBACK TO `a`"), inserts(row(7, 9)), xid(),
		l.gtid(), query("BEGIN"), inserts(row(9, 9)), query("ROLLBACK"),
		l.gtid(), query("BEGIN"), query("CREATE TABLE x (id INT) START TRANSACTION"), xid(),
		l.gtid(), query("XA START X'78',X'',1"), query("XA END X'78',X'',1"), event(replication.XA_PREPARE_LOG_EVENT, &replication.GenericEvent{}),
		l.gtid(), query("XA COMMIT X'78',X'',1"),
		l.gtid(), event(replication.TRANSACTION_PAYLOAD_EVENT, &replication.TransactionPayloadEvent{
			Events: []*replication.BinlogEvent{query("BEGIN"), inserts(row(20, 21)), xid()},
		}),
	)
	want := [][]storage.Pair{{{From: 1, To: 2}, {From: 1, To: 3}, {From: 2, To: 1}}, {}, {{From: 5, To: 6}}, {{From: 7, To: 9}}, {}, {}, {}, {}, {{From: 20, To: 21}}}
	if len(done) != len(want) {
		t.Fatalf("%d transactions, not %d", len(done), len(want))
	}
	for i, tx := range done {
		if tx.gtid.number != int64(i+1) || tx.gtid.source != source {
			t.Errorf("transaction %d is %s", i+1, tx.gtid)
		}
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
	if done[0].committed != 8_000_000 || done[1].committed != 7_000_000 {
		t.Errorf("committed at %d and %d", done[0].committed, done[1].committed)
	}
}

func TestMySQLStops(t *testing.T) {
	for name, list := range map[string][]*replication.BinlogEvent{
		"xa":        {query("XA START X'78',X'',1"), inserts(row(1, 2))},
		"statement": {query("BEGIN"), query("UPDATE following SET type = 0")},
		"no names": {query("BEGIN"), event(replication.WRITE_ROWS_EVENTv2, &replication.RowsEvent{
			Table: &replication.TableMapEvent{Schema: []byte("kith"), Table: []byte("following")}, Rows: [][]any{{int64(1)}}})},
		"partial rows": {query("BEGIN"), event(replication.WRITE_ROWS_EVENTv2, &replication.RowsEvent{
			Table:          inserts().Event.(*replication.RowsEvent).Table,
			SkippedColumns: [][]int{{1}}, Rows: [][]any{row(1, 2)}})},
	} {
		l := newMySQLLog(t)
		l.events(l.gtid())
		var err error
		for _, e := range list {
			if _, err = l.assembler.add(e.Header, e.Event, nil, nil); err != nil {
				break
			}
		}
		var stop *StopError
		if !errors.As(err, &stop) || stop.GTID != source.String()+":1" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A transaction that a crash has cut off in the binlog was not committed.
func TestCrashedTransactionIsForgotten(t *testing.T) {
	l := newMySQLLog(t)
	done := l.events(l.gtid(), query("BEGIN"), inserts(row(1, 2)),
		event(replication.FORMAT_DESCRIPTION_EVENT, &replication.FormatDescriptionEvent{}),
		l.gtid(), query("BEGIN"), inserts(row(3, 4)), xid())
	if len(done) != 1 || len(done[0].rows) != 1 || done[0].rows[0].Edge.From != 3 {
		t.Errorf("%+v", done)
	}
	l.events(l.gtid(), query("BEGIN"))
	if _, err := l.assembler.add(l.gtid().Header, l.gtid().Event, nil, nil); err == nil {
		t.Error("a transaction within another is taken for sense")
	}
}

func TestPositions(t *testing.T) {
	for flavor, c := range map[string]struct {
		start   string
		next    []string
		before  string
		all     string
		foreign string
	}{
		mysql.MariaDBFlavor: {"0-1-5,1-9-3", []string{"0-1-6", "0-2-7"}, "0-1-6,1-9-3", "0-2-7,1-9-3", "0-2-8"},
		mysql.MySQLFlavor: {source.String() + ":1-5", []string{source.String() + ":6", source.String() + ":tag:1"},
			source.String() + ":1-6", source.String() + ":1-6:tag:1", source.String() + ":7"},
	} {
		set, err := mysql.ParseGTIDSet(flavor, c.start)
		if err != nil {
			t.Fatal(err)
		}
		p := position{before: set}
		for i, text := range c.next {
			id, err := parseGTID(flavor, text)
			if err != nil || id.String() != text {
				t.Fatalf("%q is read as %s, %v", text, id, err)
			}
			p.advance(id, uint32(i))
		}
		saved := checkpoint{Flavor: flavor, Before: p.before.String(), Last: p.last.String(), Print: p.print}
		loaded, err := saved.position()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []position{p, loaded} {
			if p.before.String() != c.before || p.set().String() != c.all || p.print != 1 {
				t.Errorf("%s: before %s, all %s", flavor, p.before, p.set())
			}
			other, err := mysql.ParseGTIDSet(flavor, c.foreign)
			if err != nil || p.set().Contain(other) || !p.set().Contain(set) {
				t.Errorf("%s: %s in %s", flavor, other, p.set())
			}
		}
	}
}
