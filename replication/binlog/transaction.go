package binlog

import (
	"bytes"
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
	rows        []storage.Row  // of forward tables, as they were written
	changes     []Change       // of both sides, in order, if both are wanted
	users       []storage.UserID
	counts      []storage.UserChange // rows of user_counts; see changed
	inverse     bool                 // it may have rows of follower
	states      []storage.UserID
	posts       []storage.PostVersion // whose rows of post_counts were written
	comments    []storage.CommentID   // that were written
	bookkeeping bool                  // nothing but checkpoints, leases and the like

	// Its rows are copies of rows on another shard, or rows whose buckets have gone there: they have been read
	// where they were written.
	moves bool
}

// ours reports whether the transaction concerns the graph.
func (t *transaction) ours() bool {
	return len(t.rows)+len(t.changes)+len(t.users)+len(t.counts)+len(t.states)+len(t.posts)+len(t.comments) > 0
}

// An assembler puts the events of a stream together into transactions. Rows count only once their
// transaction is complete: it may end with a ROLLBACK.
type assembler struct {
	server    string
	databases map[string]bool
	names     []string        // the same
	skip      map[string]bool // GTIDs of transactions in which events that cannot be followed are skipped
	both      bool            // collect changes of both sides, instead of what replication needs

	open       *transaction // nil between transactions
	begun      bool         // it ends with a commit, not with its first statement
	xa         bool         // it is being prepared
	first      uint32       // fingerprint of its first event
	foreign    bool         // it has rows of other tables, or statements
	savepoints []savepoint
}

// savepoint is a point in a transaction to which it may be rolled back.
type savepoint struct {
	name                                                  string
	rows, changes, users, counts, states, posts, comments int
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
		return nil, a.rows(header.EventType, e)
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
		a.savepoints = append(a.savepoints, savepoint{s.savepoint(), len(a.open.rows), len(a.open.changes), len(a.open.users), len(a.open.counts), len(a.open.states), len(a.open.posts), len(a.open.comments)})
		return nil, nil
	case s.is(0, "ROLLBACK", "TO"):
		a.rollback(s.savepoint())
		return nil, nil
	case s.is(0, "ROLLBACK"):
		a.open.rows, a.open.changes, a.open.users, a.open.counts, a.open.states, a.open.posts, a.open.comments = nil, nil, nil, nil, nil, nil, nil
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
	if s.changes(a.names, tableNames) {
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
			a.open.rows, a.open.changes = a.open.rows[:sp.rows], a.open.changes[:sp.changes]
			a.open.users, a.open.counts, a.open.states = a.open.users[:sp.users], a.open.counts[:sp.counts], a.open.states[:sp.states]
			a.open.posts, a.open.comments = a.open.posts[:sp.posts], a.open.comments[:sp.comments]
			a.savepoints = a.savepoints[:i+1]
			return
		}
	}
}

// rows takes rows of a table.
func (a *assembler) rows(kind replication.EventType, e *replication.RowsEvent) error {
	t := a.tableOf(e.Table.Schema, e.Table.Table)
	if a.open == nil || a.open.moves || t == foreign || t == bookkeeping || t == mover {
		return nil
	}
	switch t {
	case postCounts:
		a.posts(kind, e)
		return nil
	case comments:
		a.comments(kind, e)
		return nil
	}
	name := string(e.Table.Schema) + "." + string(e.Table.Table)
	switch {
	case t.isInverse() && !isDelete(kind) && !a.both:
		return nil
	case a.xa:
		return a.stop("an XA transaction wrote "+name+", and the binlog shows its rows before it is known whether they stay",
			"write this table in ordinary transactions; "+alike+", then go on with --skip="+a.open.gtid.String())
	case len(e.Table.ColumnName) == 0:
		return a.stop("rows of "+name+" are logged without the names of their columns",
			"run: SET GLOBAL binlog_row_metadata = 'FULL'; then start again with --resync")
	}
	if column := missing(e); column != "" {
		return a.stop("rows of "+name+" are logged without "+column,
			"run: SET GLOBAL binlog_row_image = 'FULL'; and look for sessions that set another value (init_connect); then start again with --resync")
	}
	switch {
	case a.both:
		return a.sides(kind, t, e)
	case isDelete(kind) && t.isEdges():
		return a.deleted(name, e)
	}
	return a.images(kind, t, name, e)
}

// missing names a column that is read and that an image lacks; none if there is no such column.
func missing(e *replication.RowsEvent) string {
	read := layoutOf(e.Table).columns()
	for _, skipped := range e.SkippedColumns {
		for _, i := range skipped {
			if slices.Contains(read[:], i) {
				return string(e.Table.ColumnName[i])
			}
		}
	}
	return ""
}

// posts takes rows of post_counts. They are hints for caches, so a row that cannot be read, or that may be
// rolled back, does not stop replication.
func (a *assembler) posts(kind replication.EventType, e *replication.RowsEvent) {
	l := layoutOf(e.Table)
	step := 1
	if isUpdate(kind) {
		step = 2 // before and after
	}
	for i := step - 1; i < len(e.Rows); i += step {
		author, ok := integer(e.Rows[i], l.author)
		if number, also := integer(e.Rows[i], l.post); ok && also {
			post := storage.PostVersion{PostID: storage.PostID{Author: storage.UserID(author), Number: number}}
			if !isDelete(kind) {
				post.Version, _ = integer(e.Rows[i], l.version)
			}
			a.open.posts = append(a.open.posts, post)
		}
	}
}

// comments takes new rows of comment, which are hints for subscriptions, as rows of post_counts are for
// caches.
func (a *assembler) comments(kind replication.EventType, e *replication.RowsEvent) {
	if isUpdate(kind) || isDelete(kind) {
		return
	}
	l := layoutOf(e.Table)
	for _, row := range e.Rows {
		author, ok := integer(row, l.author)
		if number, also := integer(row, l.comment); ok && also {
			a.open.comments = append(a.open.comments, storage.CommentID{Author: storage.UserID(author), Number: number})
		}
	}
}

// deleted takes rows of edges that were deleted. Tombstones may be deleted: their other side still
// says the same.
func (a *assembler) deleted(name string, e *replication.RowsEvent) error {
	l := layoutOf(e.Table)
	for _, row := range e.Rows {
		if edge, err := l.edge(row); err == nil && edge.Type == storage.None {
			continue
		}
		return a.stop(fmt.Sprintf("a DELETE took %s", rowsOf(e, name)),
			"rows end by type 0 and are not deleted: bring them back with a newer update_time, or make sure that the other table of the pair lost them too, then go on with --skip="+a.open.gtid.String())
	}
	return nil
}

// images takes the rows as they are after the change. For deleted users and counts it reports only that
// they have changed.
func (a *assembler) images(kind replication.EventType, t table, name string, e *replication.RowsEvent) error {
	l := layoutOf(e.Table)
	step := 1
	if isUpdate(kind) {
		step = 2 // before and after
	}
	for i := step - 1; i < len(e.Rows); i += step {
		if !t.isEdges() {
			id, ok := integer(e.Rows[i], l.user)
			switch {
			case !ok, id == nobodysID:
			case t == users:
				a.open.users = append(a.open.users, storage.UserID(id))
			case t == userStates:
				a.open.states = append(a.open.states, storage.UserID(id))
			case isDelete(kind):
				a.open.counts = append(a.open.counts, storage.UserChange{User: storage.UserID(id), Forward: true, Inverse: true})
			default:
				a.open.counts = append(a.open.counts, l.counted(e.Rows[i+1-step:i+1]))
			}
			continue
		}
		edge, err := l.edge(e.Rows[i])
		if err != nil {
			return a.stop(err.Error(), "the table's columns have to be what this program's migrations made them")
		}
		if step == 2 {
			if before, err := l.edge(e.Rows[i-1]); err == nil && before.Pair() != edge.Pair() {
				if err := a.stop(fmt.Sprintf("an UPDATE of %s turned %d→%d into %d→%d", name, before.From, before.To, edge.From, edge.To),
					"the key of an edge does not change: make sure that the other table of the pair lost the old one, then go on with --skip="+a.open.gtid.String()); err != nil {
					return err
				}
			}
		}
		a.open.rows = append(a.open.rows, storage.Row{Side: t.side(), Edge: edge})
	}
	return nil
}

// alike is the condition under which replication may continue after an event that it cannot follow.
const alike = "make sure that follower has what following has, friend_request_inbox what friend_request has, and favorite_inbox what favorite has"

const remedyOfStatement = alike + ", then start again with --resync"

// stop returns the error for an event that cannot be followed; nil if the event is to be skipped.
func (a *assembler) stop(what, remedy string) error {
	id := ""
	if a.open != nil {
		id = a.open.gtid.String()
		if a.skip[id] {
			return nil
		}
	}
	return &StopError{Server: a.server, GTID: id, What: what, Remedy: remedy}
}

// rowsOf describes the rows for a message: how many there are, and which is the first.
func rowsOf(e *replication.RowsEvent, name string) string {
	if len(e.Rows) == 0 {
		return "rows of " + name
	}
	return fmt.Sprintf("%d row(s) of %s, the first %v", len(e.Rows), name, e.Rows[0])
}

// shown is a statement as quoted in an error message.
func shown(query []byte) string {
	const most = 200
	if len(query) > most {
		return strings.ToValidUTF8(string(query[:most]), "") + "…"
	}
	return strings.ToValidUTF8(string(query), "")
}

func isDelete(t replication.EventType) bool {
	switch t {
	case replication.DELETE_ROWS_EVENTv0, replication.DELETE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2,
		replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		return true
	}
	return false
}

func isUpdate(t replication.EventType) bool {
	switch t {
	case replication.UPDATE_ROWS_EVENTv0, replication.UPDATE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv2,
		replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1, replication.PARTIAL_UPDATE_ROWS_EVENT:
		return true
	}
	return false
}
