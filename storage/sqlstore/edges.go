package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"kith/storage"
)

// edgeTable spells the SQL of one side.
type edgeTable struct {
	name    string // of the table
	owner   string // the column it is sharded by
	peer    string // the other end's column
	columns string // owner, peer, type, update_time
	count   string // the column of user_counts that follows from it, if any
}

func tableOf(side storage.Side) *edgeTable { return &edgeTables[side] }

var edgeTables = [...]edgeTable{
	storage.Forward:  newEdgeTable("following", "from_user_id", "to_user_id", "following_count"),
	storage.Inverse:  newEdgeTable("follower", "to_user_id", "from_user_id", "follower_count"),
	storage.Requests: newEdgeTable("friend_request", "from_user_id", "to_user_id", ""),
	storage.Inbox:    newEdgeTable("friend_request_inbox", "to_user_id", "from_user_id", ""),
	markSide: {
		name: "edge_marks", owner: "from_user_id", peer: "to_user_id",
		columns: "from_user_id, to_user_id, 0, 0",
	},
}

func newEdgeTable(name, owner, peer, count string) edgeTable {
	return edgeTable{name, owner, peer, owner + ", " + peer + ", type, update_time", count}
}

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

// spell fills a statement's names in.
func (t *edgeTable) spell(text string) string {
	return strings.NewReplacer("{table}", t.name, "{owner}", t.owner, "{peer}", t.peer, "{columns}", t.columns).Replace(text)
}

// bySide holds something for each of the tables.
type bySide[T any] [len(storage.Sides)]T

// spelled is a statement in the words of all sides, made once.
func spelled(text string) (all bySide[string]) {
	for _, side := range storage.Sides {
		all[side] = tableOf(side).spell(text)
	}
	return all
}

var (
	edgesOfOwner    = spelled(sqlEdgesOfOwner)
	neighbours      = spelled(sqlNeighbours)
	neighboursByRow = spelled(sqlNeighboursByRow)
)

// Edges implements [storage.EdgeReader].
func (s *Store) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	shardOf := func(p storage.Pair) int { return s.place.Of(side.Owner(p)) }
	return lookUp(s, pairs, s.maxEdges(side, pairs), shardOf, func(shard int, pairs []storage.Pair, found func(storage.Pair, storage.Edge)) error {
		text, args := s.edgesStatement(side, pairs)
		scan := scanEdges(side)
		return s.query(ctx, "edges."+side.String(), shard, len(pairs), text, args, func(rows *sql.Rows) error {
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
	case len(owners) == 1 && len(pairs) <= s.sql.maxKeys:
		return s.edgesOfOwner(side, owners[0], pairs)
	case len(pairs) > s.sql.maxPairs:
		return s.edgesOfOwners(side, owners, pairs)
	}
	pairs = filled(pairs)
	args = make([]any, 0, 2*len(pairs))
	for _, p := range pairs {
		args = append(args, int64(side.Owner(p)), int64(side.Peer(p)))
	}
	return s.sql.edgesOf(tableOf(side), len(pairs)), args
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
		for part := range slices.Chunk(byOwner[owner], s.sql.maxKeys) {
			text, some := s.edgesOfOwner(side, owner, part)
			selects, args = append(selects, text), append(args, some...)
		}
	}
	return s.unionAll(selects), args
}

// edgesOfOwner looks up pairs of one owner.
func (s *Store) edgesOfOwner(side storage.Side, owner storage.UserID, pairs []storage.Pair) (text string, args []any) {
	which, args := in(peersOf(side, owner, pairs), int64(owner))
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
		return s.sql.maxKeys
	}
	return s.sql.maxPairs
}

// maxEdges is maxPairs for edgesStatement, which takes more where owners are few.
func (s *Store) maxEdges(side storage.Side, pairs []storage.Pair) int {
	few := s.maxPairs(side, pairs)
	if len(pairs) <= few {
		return few
	}
	owners := len(ownersIn(side, pairs))
	if owners*dense <= len(pairs) && owners+maxDense/s.sql.maxKeys <= s.sql.maxPages {
		return maxDense
	}
	return few
}

// edgeScanner reads rows of owner, peer, type and update_time.
type edgeScanner struct {
	side storage.Side
	row  *numbers
}

func scanEdges(side storage.Side) edgeScanner { return edgeScanner{side, newNumbers(4)} }

func (s edgeScanner) next(rows *sql.Rows) (storage.Edge, error) {
	if err := rows.Scan(s.row.into...); err != nil {
		return storage.Edge{}, err
	}
	p := s.side.Pair(storage.UserID(s.row.at(0)), storage.UserID(s.row.at(1)))
	return storage.Edge{From: p.From, To: p.To, Type: storage.EdgeType(s.row.at(2)), UpdateTime: storage.Micros(s.row.at(3))}, s.row.err
}
