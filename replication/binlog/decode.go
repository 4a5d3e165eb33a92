package binlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/go-mysql-org/go-mysql/replication"

	"kith/storage"
)

// A table is a table of the store, as replication sees it.
type table uint8

const (
	foreign table = iota
	following
	follower // replication writes its rows
	requests
	inbox // replication writes its rows, too
	favorites
	favoriteInbox
	relations
	relationInbox
	users
	userCounts
	userStates
	postCounts  // every change of a post raises its version there
	comments    // inserts are new comments
	bookkeeping // written all the time by running programs: checkpoints, leases
	mover       // written first by transactions that copy or remove rows of buckets that move
)

var tables = map[string]table{
	"following":            following,
	"follower":             follower,
	"friend_request":       requests,
	"friend_request_inbox": inbox,
	"favorite":             favorites,
	"favorite_inbox":       favoriteInbox,
	"relation":             relations,
	"relation_inbox":       relationInbox,
	"users":                users,
	"user_counts":          userCounts,
	"user_states":          userStates,
	"post_counts":          postCounts,
	"comment":              comments,
	"kith_checkpoints":     bookkeeping,
	"kith_leases":          bookkeeping,
	"kith_mover":           mover,
}

// isEdges reports whether the table holds edges, isInverse whether replication writes it.
func (t table) isEdges() bool   { return t >= following && t <= relationInbox }
func (t table) isInverse() bool { return t.isEdges() && t.side().IsInverse() }

// side is the store's name for the table of edges.
func (t table) side() storage.Side { return storage.Side(t - following) }

// tableNames are the tables whose rows must change only row by row.
var tableNames = []string{"following", "follower", "friend_request", "friend_request_inbox", "favorite", "favorite_inbox", "relation", "relation_inbox", "users", "user_counts", "user_states"}

// tableOf returns which table of the store this is, if the database belongs to the store.
func (a *assembler) tableOf(schema, name []byte) table {
	if !slices.Contains(a.databases, string(schema)) {
		return foreign
	}
	return tables[string(name)]
}

// An operation is what an event about rows says has been done to them; 0 for other events.
type operation uint8

const (
	inserted operation = iota + 1
	updated
	deleted
)

var operations = [math.MaxUint8 + 1]operation{
	replication.WRITE_ROWS_EVENTv0: inserted, replication.UPDATE_ROWS_EVENTv0: updated, replication.DELETE_ROWS_EVENTv0: deleted,
	replication.WRITE_ROWS_EVENTv1: inserted, replication.UPDATE_ROWS_EVENTv1: updated, replication.DELETE_ROWS_EVENTv1: deleted,
	replication.WRITE_ROWS_EVENTv2: inserted, replication.UPDATE_ROWS_EVENTv2: updated, replication.DELETE_ROWS_EVENTv2: deleted,
	replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1:  inserted,
	replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1: updated,
	replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1: deleted,
	replication.PARTIAL_UPDATE_ROWS_EVENT:               updated,
}

// images yields each row of an event: as it was before an update, otherwise nil, and as it is since, or was when it was deleted.
func (o operation) images(rows [][]any) iter.Seq2[[]any, []any] {
	return func(yield func(before, row []any) bool) {
		for i := 0; i < len(rows); i++ {
			var before []any
			if o == updated && i+1 < len(rows) {
				before = rows[i]
				i++
			}
			if !yield(before, rows[i]) {
				return
			}
		}
	}
}

// A decoder turns the packets of a stream into events, and skips irrelevant ones without parsing
// them: most rows of a binlog have been written by replication itself, and tables of others may
// have columns that this program cannot read.
type decoder struct {
	parser *replication.BinlogParser
	known  map[uint64]*mapped // by table id: the last table map of each
	of     func(schema, name []byte) table
	both   bool // rows of inverse tables are relevant, too
	values bool // and those of other tables than of edges
	sum    int  // bytes of the checksum behind each event
}

func newDecoder(flavor string, of func(schema, name []byte) table) *decoder {
	d := &decoder{parser: replication.NewBinlogParser(), known: map[uint64]*mapped{}, of: of}
	d.parser.SetFlavor(flavor)
	d.parser.SetRowsEventDecodeFunc(d.rows) // for events within a compressed transaction
	return d
}

// decode returns the event of a packet, or nil if it is irrelevant. It reports every table map in
// touched.
func (d *decoder) decode(header *replication.EventHeader, raw []byte) (event replication.Event, touched *table, err error) {
	switch header.EventType {
	case replication.TABLE_MAP_EVENT:
		m, err := d.tableMap(raw)
		if err != nil {
			return nil, nil, err
		}
		return nil, &m.table, nil
	case replication.FORMAT_DESCRIPTION_EVENT, replication.QUERY_EVENT, replication.MARIADB_QUERY_COMPRESSED_EVENT,
		replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT, replication.MARIADB_GTID_EVENT, replication.MARIADB_GTID_LIST_EVENT,
		replication.XID_EVENT, replication.XA_PREPARE_LOG_EVENT, replication.TRANSACTION_PAYLOAD_EVENT,
		replication.INCIDENT_EVENT:
	case replication.EXECUTE_LOAD_QUERY_EVENT:
		e, err := loadData(raw)
		return e, nil, err
	default:
		what := operations[header.EventType]
		if what == 0 {
			return nil, nil, nil
		}
		id, err := tableID(raw)
		if err != nil {
			return nil, nil, err
		}
		m := d.known[id]
		if m == nil || !d.reads(m.table, what == deleted) {
			return nil, nil, nil
		}
		if m.ints != nil {
			if e, ok := m.read(header.EventType, raw[headerSize:max(headerSize, len(raw)-d.sum)]); ok {
				return e, nil, nil
			}
		}
		// The parser forgets its tables with every statement.
		if _, err := d.parser.Parse(m.raw); err != nil {
			return nil, nil, fmt.Errorf("decode a table map: %w", err)
		}
	}
	e, err := d.parser.Parse(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("decode a %s: %w", header.EventType, err)
	}
	if f, ok := e.Event.(*replication.FormatDescriptionEvent); ok {
		d.sum = 0
		if f.ChecksumAlgorithm == replication.BINLOG_CHECKSUM_ALG_CRC32 {
			d.sum = replication.BinlogChecksumLength
		}
	}
	return e.Event, nil, nil
}

// loadData reads a LOAD DATA that was logged as a statement; the parser omits its text. The text is
// 13 bytes further on than that of a QUERY event. The length of the database's name is at 8, the
// length of the variables at 11.
func loadData(raw []byte) (*replication.QueryEvent, error) {
	body := raw[headerSize:]
	if len(body) >= 26 {
		schema := 26 + int(binary.LittleEndian.Uint16(body[11:]))
		if text := schema + int(body[8]) + 1; text <= len(body) {
			return &replication.QueryEvent{Schema: body[schema : text-1], Query: body[text:]}, nil
		}
	}
	return nil, fmt.Errorf("a LOAD DATA has %d bytes", len(body))
}

// reads reports whether rows of a table are parsed. Replication itself writes the rows of inverse
// tables, so they are parsed only if they are deleted, because most of them must not be deleted.
func (d *decoder) reads(t table, deleted bool) bool {
	return t != foreign && t != bookkeeping && t != mover && (t.isEdges() || d.values) && (!t.isInverse() || deleted || d.both)
}

// rows decodes the relevant rows of a compressed transaction.
func (d *decoder) rows(e *replication.RowsEvent, data []byte) error {
	at, err := e.DecodeHeader(data)
	if err != nil || !d.reads(d.of(e.Table.Schema, e.Table.Table), e.Type() == replication.EnumRowsEventTypeDelete) {
		return err
	}
	return e.DecodeData(at, data)
}

const headerSize = replication.EventHeaderSize

// tableID is at the beginning of the body of a table map and of rows: 6 bytes.
func tableID(raw []byte) (uint64, error) {
	if len(raw) < headerSize+6 {
		return 0, fmt.Errorf("an event about a table has %d bytes", len(raw))
	}
	var id [8]byte
	copy(id[:], raw[headerSize:headerSize+6])
	return binary.LittleEndian.Uint64(id[:]), nil
}

// tableMap notes what a table map says: id (6), flags (2), length and name of the
// database and a NUL, length and name of the table.
func (d *decoder) tableMap(raw []byte) (*mapped, error) {
	id, err := tableID(raw)
	if err != nil {
		return nil, err
	}
	size := max(headerSize, len(raw)-d.sum)
	if known := d.known[id]; known.same(raw, size) {
		return known, nil
	}
	rest := raw[headerSize+6:]
	var names [2][]byte
	skip := 2
	for i := range names {
		if len(rest) <= skip || len(rest) < skip+1+int(rest[skip]) {
			return nil, fmt.Errorf("a table map has %d bytes", len(raw))
		}
		names[i] = rest[skip+1 : skip+1+int(rest[skip])]
		rest, skip = rest[skip+1+int(rest[skip]):], 1
	}
	m := &mapped{table: d.of(names[0], names[1]), raw: bytes.Clone(raw), size: size}
	if d.reads(m.table, true) {
		e, err := d.parser.Parse(m.raw)
		if err != nil {
			return nil, fmt.Errorf("decode a table map: %w", err)
		}
		m.event = e.Event.(*replication.TableMapEvent)
		m.measure()
	}
	d.known[id] = m
	return m, nil
}

// A column that is read of any table.
type column int

const (
	fromUser column = iota
	toUser
	kind
	updateTime
	user
	version
	followingCount
	followerCount
	friendCount
	postCount
	favoriteCount
	totalFavorited
	post
	author
	comment
	columns
)

var columnNames = [columns]string{
	"from_user_id", "to_user_id", "type", "update_time", "user_id", "version", "following_count", "follower_count", "friend_count",
	"post_count", "favorite_count", "total_favorited", "post_id", "author_id", "comment_id",
}

var columnOf = func() map[string]column {
	of := make(map[string]column, columns)
	for c, name := range columnNames {
		of[name] = column(c)
	}
	of["kind"] = post // the item of an edge
	return of
}()

// A layout says where the columns are in one table map; −1 for those that the table lacks.
type layout [columns]int

func layoutOf(m *replication.TableMapEvent) (l layout) {
	for c := range l {
		l[c] = -1
	}
	for i, name := range m.ColumnName {
		if c, ok := columnOf[string(name)]; ok {
			l[c] = i
		}
	}
	return l
}

// number is the value of a column, 0 if it is none.
func (l layout) number(row []any, c column) int64 {
	n, _ := integer(row, l[c])
	return n
}

// counted reads a row of user_counts; before is nil if it was inserted.
func (l layout) counted(before, row []any) storage.UserChange {
	return storage.UserChange{User: storage.UserID(l.number(row, user)), Before: l.number(before, version), Counts: storage.Counts{
		Following: l.number(row, followingCount), Follower: l.number(row, followerCount), Friend: l.number(row, friendCount),
		Posts: l.number(row, postCount), Favorites: l.number(row, favoriteCount), Favorited: l.number(row, totalFavorited),
		Version: l.number(row, version),
	}}
}

// edge reads a row of a table of edges.
func (l layout) edge(row []any) (storage.Edge, error) {
	var v [4]int64
	for k, c := range [4]column{fromUser, toUser, kind, updateTime} {
		n, ok := integer(row, l[c])
		if !ok {
			return storage.Edge{}, fmt.Errorf("a row of edges has no %s: %v", columnNames[c], row)
		}
		v[k] = n
	}
	if v[2] < 0 || v[2] > math.MaxUint8 {
		return storage.Edge{}, fmt.Errorf("a row of edges has type %d", v[2])
	}
	number, ok := integer(row, l[post])
	if l[post] >= 0 && !ok {
		return storage.Edge{}, fmt.Errorf("a row of favorites has no post_id: %v", row)
	}
	return storage.Edge{
		Post:       number,
		From:       storage.UserID(v[0]),
		To:         storage.UserID(v[1]),
		Type:       storage.EdgeType(v[2]),
		UpdateTime: storage.Micros(v[3]),
	}, nil
}

// integer reads a column of any integer type.
func integer(row []any, column int) (int64, bool) {
	if column < 0 || column >= len(row) {
		return 0, false
	}
	switch v := row[column].(type) {
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}
