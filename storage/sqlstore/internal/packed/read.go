package packed

import (
	"context"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Kinds of rows of a statement that reads a packed list. It is one statement, so that
// all of it is of one moment, and has the columns part, a, b, c and data.
const (
	ofCounts = iota // version, the count, whether the list can be read packed
	ofChange        // peer, type, time
	ofChunk         // first peer; data
	ofRow           // peer, type, time
)

// parts is what has been read of a packed list.
type parts struct {
	Name
	version int64
	count   int64 // of follows, as the counts say
	whole   bool
	changed []storage.Edge // rows that count instead of what the chunks have, by ascending peer
	others  []storage.Edge // blocks and tombstones, in no order
}

// read runs a statement that reads a list, and calls chunk for each chunk, in no order: the members
// of a UNION ALL have no order of their own, though both engines read them by key. The data belongs
// to the driver.
func (l *Lists) read(ctx context.Context, what string, shard int, p *parts, text string, args []any, chunk func(first storage.UserID, data []byte)) error {
	row := db.NewNumbers(4, 1)
	err := l.db.Query(ctx, what+p.Side.String(), shard, 1, text, args, row.Each(func() {
		switch row.At(0) {
		case ofCounts:
			p.version, p.count, p.whole = row.At(1), row.At(2), row.At(3) != 0
		case ofChange:
			p.changed = append(p.changed, p.edge(row))
		case ofChunk:
			chunk(storage.UserID(row.At(1)), row.Text())
		case ofRow:
			p.others = append(p.others, p.edge(row))
		}
	}))
	db.SortByPeer(p.Side, p.changed)
	return err
}

// edge makes an edge of the peer, type and time in a row.
func (p *parts) edge(row *db.Numbers) storage.Edge {
	pair := p.Side.Pair(p.Owner, storage.UserID(row.At(1)))
	return storage.Edge{From: pair.From, To: pair.To, Type: storage.EdgeType(row.At(2)), UpdateTime: storage.Micros(row.At(3))}
}

// A chunk is some follows by ascending peer, see packChunk.
type chunk struct {
	first storage.UserID
	data  []byte
}
