package binlog

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"kith/replication/binlog/replica"
	"kith/storage"
)

// A transaction is what one committed transaction of the binlog means to Kith.
type transaction struct {
	gtid        replica.GTID
	print       uint32               // of its first and last event
	committed   storage.Micros       // when it was
	rows        []storage.Row        // of edges, in order; a row that was deleted has type None at time 0
	users       []storage.UserChange // by row of a table
	inverse     bool                 // it may have rows of follower
	posts       []storage.ChangedPost
	comments    []storage.CommentID // that were written, or are gone
	left        left
	tried       []string // databases of which it has a test write, see [server.try]
	bookkeeping bool     // nothing but checkpoints, leases and the like
	skipped     string   // the first thing in it that was skipped, as told
	skips       int      // how many there were

	// Its rows are copies of rows on another shard, or rows whose buckets have gone there. What it writes to forward tables is applied
	// all the same: the log of the other shard may have been lost, and its tables no longer have these rows, either.
	moves bool

	large bool // it has changed more than [mostChanged] rows, which are not here
}

// mostChanged is how many rows one transaction may change that is followed: with what is made of them, they take a gigabyte.
const mostChanged = 5_000_000

// ours reports whether the transaction concerns the graph.
func (t *transaction) ours() bool {
	return len(t.rows)+len(t.users)+len(t.posts) > 0
}

// size is the room that it takes among those that wait, see [mostRows].
func (t *transaction) size() int64 {
	return int64(min(len(t.rows)+len(t.users)+len(t.posts), mostRows))
}

// change is what the transaction has changed. The log does not tell whether a mark has changed.
func (t *transaction) change() storage.Change {
	c := storage.Change{Posts: t.posts, Gap: t.large}
	for _, u := range t.users {
		switch {
		case u.Counts.Version == 0:
			c.AddUser(u.User, u.What)
		case t.inverse:
			u.What |= storage.Entering
			fallthrough
		default:
			c.AddCounts(u)
		}
	}
	for _, r := range t.rows {
		if r.Edge.UpdateTime == 0 { // somebody has deleted or changed it by hand
			c.AddUser(r.Side.Owner(r.Edge.Pair()), storage.Missed)
		} else {
			c.AddRow(r.Side, r.Edge)
		}
	}
	for i := range c.Users {
		if u := &c.Users[i]; u.What.Has(storage.Whole) { // the counts alone are not enough
			u.Before = u.Counts.Version
		}
	}
	return c
}

// An assembler puts the events of a stream together into transactions. Rows count only once their
// transaction is complete: it may end with a ROLLBACK.
type assembler struct {
	server    string
	databases []string
	skip      []string // GTIDs of transactions in which events that cannot be followed are skipped
	both      bool     // collect the edges of both sides
	values    bool     // collect what is no edge

	joined func(schema string) (bool, error) // whether another database is the store's by now; nil: none is

	known      map[uint64]*mapped        // by table id
	images     [2][columns]replica.Value // of the row that is being read
	open       *transaction              // nil between transactions
	begun      bool                      // it ends with a commit, not with its first statement
	xa         bool                      // it is being prepared
	first      uint32                    // fingerprint of its first event
	foreign    bool                      // it has rows of other tables, or statements
	savepoints []savepoint
}

// savepoint is what a transaction may be rolled back to.
type savepoint struct {
	name string
	then transaction
}

// add takes the next event and returns the transaction that it completes, if any. Its errors are
// [*StopError]; errHistory if the server itself says that events are missing; other errors if the stream
// makes no sense.
func (a *assembler) add(e replica.Event) (*transaction, error) { return a.take(e, e.Raw) }

// take takes an event that is, or is within, the one that the server has sent.
func (a *assembler) take(e replica.Event, sent []byte) (*transaction, error) {
	switch {
	case e.Kind == replica.FormatEvent:
		a.open = nil // the server crashed during it: it was never committed
		clear(a.known)
	case e.Kind == replica.GTIDEvent, e.Kind == replica.TaggedEvent, e.Kind == replica.MariaGTIDEvent:
		return nil, a.begin(e)
	case e.Kind == replica.PayloadEvent:
		return a.payload(e)
	case e.IsQuery():
		return a.query(e, sent)
	case e.Kind == replica.TableEvent:
		m, err := a.mapped(e)
		if err != nil {
			return nil, err
		}
		a.foreign = a.foreign || m.table != bookkeeping && m.table != mover
		if a.open != nil {
			a.open.moves = a.open.moves || m.table == mover
			a.open.inverse = a.open.inverse || m.table == follower
		}
	case e.Operation() != 0:
		id, err := e.TableID()
		if err != nil {
			return nil, err
		}
		if m := a.known[id]; m != nil && m.info != nil && a.reads(m.table, e.Operation()) {
			if err := a.rows(m, e); err != nil {
				return nil, err
			}
			return nil, a.bound()
		}
	case e.Kind == replica.XIDEvent, e.Kind == replica.XAPrepareEvent:
		return a.commit(sent), nil
	case e.Kind == replica.IncidentEvent:
		return nil, fmt.Errorf("%w: the server has lost events", errHistory)
	}
	return nil, nil
}

// castagnoli is not the polynomial that servers use: with theirs, every event that ends with its
// own checksum would have the same sum.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// begin opens a transaction. MariaDB whose disk was full, and whose commit was killed meanwhile, has written a part of it before.
func (a *assembler) begin(e replica.Event) error {
	b, err := e.Begin()
	if err != nil {
		return err
	}
	if a.open != nil && a.open.gtid != b.GTID {
		return fmt.Errorf("transaction %s begins before %s is complete", b.GTID, a.open.gtid)
	}
	committed := storage.Micros(b.Committed)
	if committed == 0 {
		committed = storage.MicrosOf(time.Unix(int64(e.Time), 0))
	}
	a.open = &transaction{gtid: b.GTID, committed: committed}
	a.begun, a.xa, a.foreign, a.savepoints = e.Kind == replica.MariaGTIDEvent && !b.Alone, b.XA, false, a.savepoints[:0]
	a.first = crc32.Checksum(e.Raw, castagnoli)
	return nil
}

// commit completes the transaction.
func (a *assembler) commit(sent []byte) *transaction {
	t := a.open
	if t == nil {
		return nil
	}
	a.open = nil
	t.print = crc32.Update(a.first, castagnoli, sent)
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
func (a *assembler) payload(e replica.Event) (*transaction, error) {
	for inner, err := range e.Payload() {
		if err != nil { // again and again, because the event has come whole
			if err := a.stop(err.Error(), remedyOfPayload); err != nil {
				return nil, err
			}
			return a.commit(e.Raw), nil
		}
		if done, err := a.take(inner, e.Raw); err != nil || done != nil {
			return done, err
		}
	}
	return nil, nil
}

// query takes an event that was logged as text: the begin and end of transactions, DDL, and statements that
// were not logged as rows.
func (a *assembler) query(e replica.Event, sent []byte) (*transaction, error) {
	if a.open == nil {
		return nil, nil // a server without GTIDs, which preflight refuses
	}
	schema, text, err := e.Query()
	if err != nil {
		return nil, err
	}
	s := parse(schema, string(text))
	switch {
	case s.is(0, "BEGIN"), s.is(0, "START", "TRANSACTION"):
		a.begun = true
		return nil, nil
	case s.is(0, "COMMIT"):
		return a.commit(sent), nil
	case s.is(0, "SAVEPOINT"):
		a.savepoints = append(a.savepoints, savepoint{s.savepoint(), *a.open})
		return nil, nil
	case s.is(0, "ROLLBACK", "TO"):
		a.rollback(s.savepoint())
		return nil, nil
	case s.is(0, "ROLLBACK"):
		*a.open = transaction{gtid: a.open.gtid, committed: a.open.committed}
		return a.commit(sent), nil
	case s.is(0, "RELEASE"):
		return nil, nil
	case s.is(0, "XA", "START"), s.is(0, "XA", "BEGIN"):
		a.begun, a.xa = true, true
		return nil, nil
	case s.is(0, "XA", "END"), s.is(0, "XA", "PREPARE"):
		return nil, nil
	case s.is(0, "XA"):
		a.foreign = true
		return a.commit(sent), nil
	}
	a.foreign = true
	if s.changes(a.databases, tableNames) {
		if err := a.stop(fmt.Sprintf("the statement %q was logged as text, not row by row", shown(text)), remedyOfStatement); err != nil {
			return nil, err
		}
	}
	if a.begun {
		return nil, nil
	}
	return a.commit(sent), nil
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
func (a *assembler) rows(m *mapped, e replica.Event) error {
	t, name := m.table, m.info.Schema+"."+m.info.Name
	if a.open == nil || a.open.large || a.open.moves && (a.both || !t.isEdges() || e.Operation() == replica.Deleted) {
		return nil
	}
	rows, err := m.info.Rows(e)
	if err != nil {
		return err
	}
	hints := t == postCounts || t == comments // rows that cannot be read, or may be rolled back, do not stop replication
	switch {
	case hints:
	case a.xa:
		return a.stop("an XA transaction wrote "+name+", and the binlog shows its rows before it is known whether they stay",
			"write this table in ordinary transactions; "+a.remedyBySkipping())
	case !m.info.Named:
		return a.stop("rows of "+name+" are logged without the names of their columns",
			"run: SET GLOBAL binlog_row_metadata = 'FULL'; then start again with --resync")
	}
	if column := rows.Lacks(); column != "" && !hints {
		return a.stop("rows of "+name+" are logged without "+column,
			"run: SET GLOBAL binlog_row_image = 'FULL'; and look for sessions that set another value (init_connect); then start again with --resync")
	}
	all := rows
	was, is := row(a.images[0][:]), row(a.images[1][:])
	for {
		more, err := rows.Next(was, is)
		if err != nil || !more {
			return err
		}
		before := was
		if rows.Kind != replica.Updated {
			before = nil
		}
		if !t.isEdges() {
			a.value(rows.Kind, t, before, is)
			if t == userCounts && is.number(user) == nobodysID {
				a.open.tried = append(a.open.tried, m.info.Schema)
			}
		} else if err := a.edge(m, all, before, is); err != nil {
			return err
		}
	}
}

// bound stops at a transaction that would take all memory, at each new start as well: somebody has changed a whole table by hand.
func (a *assembler) bound() error {
	t := a.open
	if t == nil || len(t.rows)+len(t.users)+len(t.posts)+len(t.comments) <= mostChanged {
		return nil
	}
	t.rows, t.users, t.posts, t.comments, t.large = nil, nil, nil, nil, true
	return a.stop(fmt.Sprintf("a transaction changed more than %d rows of the graph", mostChanged),
		"change so many rows in several transactions; "+a.remedyBySkipping())
}

// value takes a row of another table than those of edges, which only says whose value has changed.
func (a *assembler) value(what replica.Operation, t table, before, is row) {
	to := a.open
	id, ok := is[user].N, is[user].OK
	if v := is.number(version); (t == userCounts || t == postCounts) && (what == replica.Inserted || what == replica.Updated && v != before.number(version)) {
		to.left = left{storage.PostID{Author: storage.UserID(cmp.Or(is.number(author), id)), Number: is.number(post)}, v, before.number(version) == 0}
	}
	switch {
	case t == postCounts:
		if is[author].OK && is[post].OK {
			to.posts = append(to.posts, is.post(storage.PostEdited))
		}
	case t == comments:
		if !is[author].OK || !is[comment].OK {
			return
		}
		if to.comments = append(to.comments, storage.CommentID{Author: storage.UserID(is[author].N), Number: is[comment].N}); what == replica.Inserted {
			to.posts = append(to.posts, is.post(storage.PostCommented))
		}
	case !ok, id == nobodysID:
	case t == users:
		to.users = append(to.users, storage.UserChange{User: storage.UserID(id), What: storage.Whole})
	case t == userStates:
		to.users = append(to.users, storage.UserChange{User: storage.UserID(id), What: storage.Standing})
	case what == replica.Deleted:
		to.users = append(to.users, storage.UserChange{User: storage.UserID(id), What: storage.Leaving | storage.Entering})
	default:
		to.users = append(to.users, is.counted(before))
	}
}

// edge takes a row of a table of edges, one of all of its event. Replication can follow neither rows that were deleted, except tombstones, whose other
// side still says the same, nor rows whose key has changed.
func (a *assembler) edge(m *mapped, all replica.Rows, before, is row) error {
	side, name := m.table.side(), m.info.Schema+"."+m.info.Name
	edge, err := is.edge(side)
	if err != nil {
		return a.stop(err.Error(), remedyOfColumns)
	}
	was := edge
	if before != nil {
		if was, err = before.edge(side); err != nil {
			was = edge
		}
	}
	switch {
	case a.both:
		if was.Pair() != edge.Pair() || a.values && before != nil && was.UpdateTime >= edge.UpdateTime { // Kith writes newer rows only
			a.open.rows = append(a.open.rows, storage.Row{Side: side, Edge: was.Pair().Edge(storage.None, 0)})
		}
		if all.Kind == replica.Deleted {
			edge = edge.Pair().Edge(storage.None, 0)
		}
	case all.Kind == replica.Deleted && edge.Type == storage.None:
		return nil
	case all.Kind == replica.Deleted:
		return a.stop(fmt.Sprintf("a DELETE took %d row(s) of %s, with %d→%d", all.Count(), name, edge.From, edge.To),
			"rows end by type 0 and are not deleted: "+putBack+", then "+a.remedyBySkipping())
	case was.Pair() != edge.Pair():
		err := a.stop(fmt.Sprintf("an UPDATE of %s turned %d→%d into %d→%d", name, was.From, was.To, edge.From, edge.To),
			"the key of an edge does not change: "+a.remedyBySkipping())
		if err != nil {
			return err
		}
	}
	a.open.rows = append(a.open.rows, storage.Row{Side: side, Edge: edge})
	return nil
}

// After an event that cannot be followed, a full scan makes the other tables agree with these, also where rows came back as they
// were or stay away.
const (
	putBack           = "put back what is missing from following, friend_request, favorite and relation"
	thenRepair        = "; when it has caught up, run: kith reconcile full --repair"
	remedyOfColumns   = "the table's columns have to be what this program's migrations made them"
	remedyOfPayload   = "run: SET GLOBAL binlog_transaction_compression_level_zstd = 3; then start again with --resync"
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
