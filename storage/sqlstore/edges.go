package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Served by the primary key.
const sqlEdgesOfOwner = `
SELECT {columns}
FROM {table}
WHERE {owner} = ? AND {peer} IN (`

// Served by the primary key, which has the peers in order. To name an index saves MariaDB a
// fifth of the time of many short lists, which it takes to choose one. A list comes as one text: a row for each of its edges takes
// the driver, and the server, several times as long.
const sqlNeighbours = `
SELECT {owner}, COUNT(*), GROUP_CONCAT({peer})
FROM {table}{by key}
WHERE type = 1 AND {owner} IN (`

// Served by the table's list index.
const sqlNeighboursByRow = `
SELECT {peer}
FROM {table}
WHERE {owner} = ? AND type = 1`

var (
	edgesOfOwner    = db.Spelled(sqlEdgesOfOwner)
	neighbours      = db.Spelled(sqlNeighbours)
	neighboursByRow = db.Spelled(sqlNeighboursByRow)
)

// Edges implements [storage.EdgeReader].
func (s *Store) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	shardOf := func(p storage.Pair) int { return s.place.Of(side.Owner(p)) }
	return db.LookUp(s.db, pairs, s.maxEdges(side, pairs), shardOf, func(shard int, pairs []storage.Pair, found func(storage.Pair, storage.Edge)) error {
		text, args := s.edgesStatement(side, pairs)
		scan := scanEdges(side)
		return s.db.Query(ctx, "edges."+side.String(), shard, len(pairs), text, args, func(rows *sql.Rows) error {
			e, err := scan.next(rows)
			found(e.Pair(), e)
			return err
		})
	})
}

// edgesStatement spells the look-up of pairs, more simply where they have one
// owner, which they mostly have.
func (s *Store) edgesStatement(side storage.Side, pairs []storage.Pair) (text string, args []any) {
	switch owners := ownersIn(side, pairs); {
	case len(owners) == 1 && len(pairs) <= s.sql.MaxKeys:
		return s.edgesOfOwner(side, owners[0], pairs)
	case len(pairs) > s.sql.MaxPairs:
		return s.edgesOfOwners(side, owners, pairs)
	}
	pairs = db.Filled(pairs)
	args = make([]any, 0, 2*len(pairs))
	for _, p := range pairs {
		args = append(args, int64(side.Owner(p)), int64(side.Peer(p)))
	}
	return s.sql.EdgesOf(db.TableOf(side), len(pairs)), args
}

// edgesOfOwners looks up many pairs of few owners: a UNION ALL of one look-up for each
// owner, or for every maxKeys of its peers. What many users have to do with the same
// thousand others, as in followersYouKnow, is one statement so.
func (s *Store) edgesOfOwners(side storage.Side, owners []storage.UserID, pairs []storage.Pair) (text string, args []any) {
	byOwner := make(map[storage.UserID][]storage.Pair, len(owners))
	for _, p := range pairs {
		byOwner[side.Owner(p)] = append(byOwner[side.Owner(p)], p)
	}
	args = make([]any, 0, len(pairs)+2*len(owners))
	var selects []string
	for _, owner := range owners {
		for part := range slices.Chunk(byOwner[owner], s.sql.MaxKeys) {
			text, some := s.edgesOfOwner(side, owner, part)
			selects, args = append(selects, text), append(args, some...)
		}
	}
	return s.unionAll(selects), args
}

// edgesOfOwner looks up pairs of one owner.
func (s *Store) edgesOfOwner(side storage.Side, owner storage.UserID, pairs []storage.Pair) (text string, args []any) {
	which, args := db.In(peersOf(side, owner, pairs), int64(owner))
	return edgesOfOwner[side] + which, args
}

// ownersIn lists the owners of pairs, each once.
func ownersIn(side storage.Side, pairs []storage.Pair) []storage.UserID {
	if len(pairs) > 0 && haveOneOwner(side, pairs) {
		return []storage.UserID{side.Owner(pairs[0])}
	}
	var owners []storage.UserID
	seen := make(map[storage.UserID]bool)
	for _, p := range pairs {
		if owner := side.Owner(p); !seen[owner] {
			seen[owner] = true
			owners = append(owners, owner)
		}
	}
	return owners
}

func haveOneOwner(side storage.Side, pairs []storage.Pair) bool {
	return !slices.ContainsFunc(pairs, func(p storage.Pair) bool { return side.Owner(p) != side.Owner(pairs[0]) })
}

// Bounds on the pairs of few owners in one statement.
const (
	maxDense = 20_000 // pairs; an engine takes 32,766 values
	dense    = 32     // pairs of an owner, on average, that are worth a SELECT of their own
)

// maxPairs bounds one statement's pairs.
func (s *Store) maxPairs(side storage.Side, pairs []storage.Pair) int {
	if haveOneOwner(side, pairs) {
		return s.sql.MaxKeys
	}
	return s.sql.MaxPairs
}

// maxEdges is maxPairs for edgesStatement, which takes more where owners are few.
func (s *Store) maxEdges(side storage.Side, pairs []storage.Pair) int {
	few := s.maxPairs(side, pairs)
	if len(pairs) <= few {
		return few
	}
	owners := len(ownersIn(side, pairs))
	if owners*dense <= len(pairs) && owners+maxDense/s.sql.MaxKeys <= s.sql.MaxPages {
		return maxDense
	}
	return few
}

// edgeScanner reads rows of owner, peer, type and update_time.
type edgeScanner struct {
	side storage.Side
	row  *db.Numbers
}

func scanEdges(side storage.Side) edgeScanner { return edgeScanner{side, db.NewNumbers(4)} }

func (s edgeScanner) next(rows *sql.Rows) (storage.Edge, error) {
	if err := rows.Scan(s.row.Into...); err != nil {
		return storage.Edge{}, err
	}
	p := s.side.Pair(storage.UserID(s.row.At(0)), storage.UserID(s.row.At(1)))
	return storage.Edge{From: p.From, To: p.To, Type: storage.EdgeType(s.row.At(2)), UpdateTime: storage.Micros(s.row.At(3))}, s.row.Err
}
