package binlog

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/uuid"

	"kith/storage"
)

// A transaction is what one committed transaction of the binlog means to Kith.
type transaction struct {
	gtid        gtid
	print       uint32         // of its first and last event
	committed   storage.Micros // when it was
	rows        []storage.Row  // of edges, in order; a row that was deleted has type None at time 0
	users       []storage.UserID
	counts      []storage.UserChange // rows of user_counts; see changed
	inverse     bool                 // it may have rows of follower
	states      []storage.UserID
	posts       []storage.PostID    // whose rows of post_counts were written
	comments    []storage.CommentID // that were written
	left        Left
	tried       []string // databases of which it has a test write, see [server.try]
	bookkeeping bool     // nothing but checkpoints, leases and the like
	skipped     string   // the first thing in it that was skipped, as told
	skips       int      // how many there were

	// Its rows are copies of rows on another shard, or rows whose buckets have gone there: they have been read
	// where they were written.
	moves bool
}

// Left is a row that a transaction has written and that shows, by its version, when the transaction can be read: the counts of a post, or
// those of a user if Number is 0. A transaction may leave none.
type Left struct {
	storage.PostID
	Version int64
	New     bool // the row was not there before
}

// ours reports whether the transaction concerns the graph.
func (t *transaction) ours() bool {
	return len(t.rows)+len(t.users)+len(t.counts)+len(t.states)+len(t.posts)+len(t.comments) > 0
}

// An assembler puts the events of a stream together into transactions. Rows count only once their
// transaction is complete: it may end with a ROLLBACK.
type assembler struct {
	server    string
	databases []string
	skip      []string // GTIDs of transactions in which events that cannot be followed are skipped
	both      bool     // collect the edges of both sides
	values    bool     // collect what is no edge

	open       *transaction // nil between transactions
	begun      bool         // it ends with a commit, not with its first statement
	xa         bool         // it is being prepared
	first      uint32       // fingerprint of its first event
	foreign    bool         // it has rows of other tables, or statements
	savepoints []savepoint
}

// savepoint is what a transaction may be rolled back to.
type savepoint struct {
	name string
	then transaction
}

// mariaPreparedXA is MariaDB's flag of a transaction prepared by XA.
const mariaPreparedXA = 64

// add takes the next event and returns the transaction that it completes, if any. Its errors are
// [*StopError]; errHistory if the server itself says that events are missing; other errors if the stream
// makes no sense.
func (a *assembler) add(header *replication.EventHeader, event replication.Event, touched *table, raw []byte) (*transaction, error) {
	if touched != nil {
		a.foreign = a.foreign || *touched != bookkeeping && *touched != mover
		if a.open != nil && *touched == mover {
			a.open.moves = true
		}
		if a.open != nil && *touched == follower {
			a.open.inverse = true
		}
	}
	switch e := event.(type) {
	case *replication.FormatDescriptionEvent:
		a.open = nil // the server crashed during it: it was never committed
	case *replication.MariadbGTIDEvent:
		a.xa = e.Flags&mariaPreparedXA != 0
		return nil, a.begin(gtid{maria: e.GTID}, header, raw, !e.IsStandalone(), 0)
	case *replication.GTIDEvent:
		return nil, a.beginMySQL(e, header, raw)
	case *replication.GtidTaggedLogEvent:
		return nil, a.beginMySQL(&e.GTIDEvent, header, raw)
	case *replication.TransactionPayloadEvent:
		return a.payload(e, raw)
	case *replication.QueryEvent:
		return a.query(e, raw)
	case *replication.RowsEvent:
		return nil, a.rows(operations[header.EventType], e)
	case *replication.XIDEvent:
		return a.commit(raw), nil
	case *replication.GenericEvent:
		switch header.EventType {
		case replication.XA_PREPARE_LOG_EVENT:
			return a.commit(raw), nil
		case replication.INCIDENT_EVENT:
			return nil, fmt.Errorf("%w: the server has lost events", errHistory)
		}
	}
	return nil, nil
}

func (a *assembler) beginMySQL(e *replication.GTIDEvent, header *replication.EventHeader, raw []byte) error {
	a.xa = false
	source, err := uuid.FromBytes(e.SID)
	if err != nil {
		return err
	}
	return a.begin(gtid{source: source, tag: e.Tag, number: e.GNO}, header, raw, false, storage.Micros(e.OriginalCommitTimestamp))
}

// castagnoli is not the polynomial that servers use: with theirs, every event that ends with its
// own checksum would have the same sum.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// begin opens a transaction.
func (a *assembler) begin(id gtid, header *replication.EventHeader, raw []byte, begun bool, committed storage.Micros) error {
	if a.open != nil {
		return fmt.Errorf("transaction %s begins before %s is complete", id, a.open.gtid)
	}
	if committed == 0 {
		committed = storage.MicrosOf(time.Unix(int64(header.Timestamp), 0))
	}
	a.open = &transaction{gtid: id, committed: committed}
	a.begun, a.foreign, a.savepoints = begun, false, a.savepoints[:0]
	a.first = crc32.Checksum(raw, castagnoli)
	return nil
}

// commit completes the transaction.
func (a *assembler) commit(raw []byte) *transaction {
	t := a.open
	if t == nil {
		return nil
	}
	a.open = nil
	t.print = crc32.Update(a.first, castagnoli, raw)
	t.bookkeeping = !a.foreign && !t.ours()
	if len(t.rows) > 0 {
		// MariaDB reports seconds. The rows' own clock is finer, and is used if it agrees.
		const agree = storage.Micros(2 * time.Second / time.Microsecond)
		if own := t.rows[0].Edge.UpdateTime; max(own-t.committed, t.committed-own) <= agree {
			t.committed = own
		}
	}
	return t
}

// payload takes a transaction that MySQL has compressed.
func (a *assembler) payload(e *replication.TransactionPayloadEvent, raw []byte) (*transaction, error) {
	for _, inner := range e.Events {
		var touched *table
		if m, ok := inner.Event.(*replication.TableMapEvent); ok {
			t := a.tableOf(m.Schema, m.Table)
			touched = &t
		}
		done, err := a.add(inner.Header, inner.Event, touched, raw)
		if err != nil || done != nil {
			return done, err
		}
	}
	return nil, nil
}

// query takes an event that was logged as text: the begin and end of transactions, DDL, and statements that
// were not logged as rows.
func (a *assembler) query(e *replication.QueryEvent, raw []byte) (*transaction, error) {
	if a.open == nil {
		return nil, nil // a server without GTIDs, which preflight refuses
	}
	switch {
	case bytes.Equal(e.Query, []byte("BEGIN")):
		a.begun = true
		return nil, nil
	case bytes.Equal(e.Query, []byte("COMMIT")):
		return a.commit(raw), nil
	}
	s := parse(string(e.Schema), string(e.Query))
	switch {
	case s.is(0, "BEGIN"), s.is(0, "START", "TRANSACTION"):
		a.begun = true
		return nil, nil
	case s.is(0, "COMMIT"):
		return a.commit(raw), nil
	case s.is(0, "SAVEPOINT"):
		a.savepoints = append(a.savepoints, savepoint{s.savepoint(), *a.open})
		return nil, nil
	case s.is(0, "ROLLBACK", "TO"):
		a.rollback(s.savepoint())
		return nil, nil
	case s.is(0, "ROLLBACK"):
		*a.open = transaction{gtid: a.open.gtid, committed: a.open.committed}
		return a.commit(raw), nil
	case s.is(0, "RELEASE"):
		return nil, nil
	case s.is(0, "XA", "START"), s.is(0, "XA", "BEGIN"):
		a.begun, a.xa = true, true
		return nil, nil
	case s.is(0, "XA", "END"), s.is(0, "XA", "PREPARE"):
		return nil, nil
	case s.is(0, "XA"):
		a.foreign = true
		return a.commit(raw), nil
	}
	a.foreign = true
	if s.changes(a.databases, tableNames) {
		if err := a.stop(fmt.Sprintf("the statement %q was logged as text, not row by row", shown(e.Query)), remedyOfStatement); err != nil {
			return nil, err
		}
	}
	if a.begun {
		return nil, nil
	}
	return a.commit(raw), nil
}

// rollback drops the rows after a savepoint; the savepoint stays.
func (a *assembler) rollback(name string) {
	for i, sp := range slices.Backward(a.savepoints) {
		if strings.EqualFold(sp.name, name) {
			*a.open, a.savepoints = sp.then, a.savepoints[:i+1]
			return
		}
	}
}

// rows takes rows of a table.
func (a *assembler) rows(what operation, e *replication.RowsEvent) error {
	t := a.tableOf(e.Table.Schema, e.Table.Table)
	if a.open == nil || a.open.moves || t == foreign || t == bookkeeping || t == mover || !a.values && !t.isEdges() ||
		t.isInverse() && what != deleted && !a.both {
		return nil
	}
	l := layoutOf(e.Table)
	hints := t == postCounts || t == comments // rows that cannot be read, or may be rolled back, do not stop replication
	switch {
	case hints:
	case a.xa:
		return a.stop("an XA transaction wrote "+nameOf(e)+", and the binlog shows its rows before it is known whether they stay",
			"write this table in ordinary transactions; "+a.remedyBySkipping())
	case len(e.Table.ColumnName) == 0:
		return a.stop("rows of "+nameOf(e)+" are logged without the names of their columns",
			"run: SET GLOBAL binlog_row_metadata = 'FULL'; then start again with --resync")
	}
	if column := missing(l, e); column != "" && !hints {
		return a.stop("rows of "+nameOf(e)+" are logged without "+column,
			"run: SET GLOBAL binlog_row_image = 'FULL'; and look for sessions that set another value (init_connect); then start again with --resync")
	}
	for before, row := range what.images(e.Rows) {
		if !t.isEdges() {
			a.value(what, t, l, before, row)
			if t == userCounts && l.number(row, user) == nobodysID {
				a.open.tried = append(a.open.tried, string(e.Table.Schema))
			}
		} else if err := a.edge(what, t, e, l, before, row); err != nil {
			return err
		}
	}
	return nil
}

func nameOf(e *replication.RowsEvent) string {
	return string(e.Table.Schema) + "." + string(e.Table.Table)
}

// missing names a column that is read and that an image lacks; none if there is no such column.
func missing(l layout, e *replication.RowsEvent) string {
	for _, skipped := range e.SkippedColumns {
		for _, i := range skipped {
			if slices.Contains(l[:], i) {
				return string(e.Table.ColumnName[i])
			}
		}
	}
	return ""
}

// value takes a row of another table than those of edges, which only says whose value has changed.
func (a *assembler) value(what operation, t table, l layout, before, row []any) {
	to := a.open
	id, ok := integer(row, l[user])
	by, written := integer(row, l[author])
	if v := l.number(row, version); (t == userCounts || t == postCounts) && (what == inserted || what == updated && v != l.number(before, version)) {
		to.left = Left{storage.PostID{Author: storage.UserID(cmp.Or(by, id)), Number: l.number(row, post)}, v, what == inserted}
	}
	switch {
	case t == postCounts:
		if number, also := integer(row, l[post]); written && also {
			to.posts = append(to.posts, storage.PostID{Author: storage.UserID(by), Number: number})
		}
	case t == comments:
		if number, also := integer(row, l[comment]); written && also && what == inserted {
			to.comments = append(to.comments, storage.CommentID{Author: storage.UserID(by), Number: number})
		}
	case !ok, id == nobodysID:
	case t == users:
		to.users = append(to.users, storage.UserID(id))
	case t == userStates:
		to.states = append(to.states, storage.UserID(id))
	case what == deleted:
		to.counts = append(to.counts, storage.UserChange{User: storage.UserID(id), Forward: true, Inverse: true})
	default:
		to.counts = append(to.counts, l.counted(before, row))
	}
}

// edge takes a row of a table of edges. Replication can follow neither rows that were deleted, except tombstones, whose other
// side still says the same, nor rows whose key has changed.
func (a *assembler) edge(what operation, t table, e *replication.RowsEvent, l layout, before, row []any) error {
	edge, err := l.edge(row)
	if err != nil {
		return a.stop(err.Error(), "the table's columns have to be what this program's migrations made them")
	}
	was := edge
	if before != nil {
		if was, err = l.edge(before); err != nil {
			was = edge
		}
	}
	switch {
	case a.both:
		if was.Pair() != edge.Pair() || a.values && before != nil && was.UpdateTime >= edge.UpdateTime { // Kith writes newer rows only
			a.open.rows = append(a.open.rows, storage.Row{Side: t.side(), Edge: was.Pair().Edge(storage.None, 0)})
		}
		if what == deleted {
			edge = edge.Pair().Edge(storage.None, 0)
		}
	case what == deleted && edge.Type == storage.None:
		return nil
	case what == deleted:
		return a.stop(fmt.Sprintf("a DELETE took %d row(s) of %s, the first %v", len(e.Rows), nameOf(e), e.Rows[0]),
			"rows end by type 0 and are not deleted: "+putBack+", then "+a.remedyBySkipping())
	case was.Pair() != edge.Pair():
		err := a.stop(fmt.Sprintf("an UPDATE of %s turned %d→%d into %d→%d", nameOf(e), was.From, was.To, edge.From, edge.To),
			"the key of an edge does not change: "+a.remedyBySkipping())
		if err != nil {
			return err
		}
	}
	a.open.rows = append(a.open.rows, storage.Row{Side: t.side(), Edge: edge})
	return nil
}

// After an event that cannot be followed, a full scan makes the other tables agree with these, also where rows came back as they
// were or stay away.
const (
	putBack           = "put back what is missing from following, friend_request, favorite and relation"
	thenRepair        = "; when it has caught up, run: kith reconcile full --repair"
	remedyOfStatement = putBack + ", then run: kith replicate --resync" + thenRepair
)

func (a *assembler) remedyBySkipping() string {
	return "run: kith replicate --skip=" + a.open.gtid.String() + thenRepair
}

// stop returns the error for an event that cannot be followed; nil if the event is to be skipped.
func (a *assembler) stop(what, remedy string) error {
	id := ""
	if a.open != nil {
		id = a.open.gtid.String()
		if slices.Contains(a.skip, id) {
			if a.open.skips++; a.open.skips == 1 {
				a.open.skipped = what
			}
			return nil
		}
	}
	return &StopError{Server: a.server, GTID: id, What: what, Remedy: remedy}
}

// shown is a statement as quoted in an error message.
func shown(query []byte) string {
	const most = 200
	if len(query) > most {
		return strings.ToValidUTF8(string(query[:most]), "") + "…"
	}
	return strings.ToValidUTF8(string(query), "")
}
