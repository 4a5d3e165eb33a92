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
	count   string // the column of user_counts that follows from it
}

func tableOf(side storage.Side) *edgeTable { return &edgeTables[side] }

var edgeTables = [...]edgeTable{
	storage.Forward: newEdgeTable("following", "from_user_id", "to_user_id", "following_count"),
	storage.Inverse: newEdgeTable("follower", "to_user_id", "from_user_id", "follower_count"),
}

func newEdgeTable(name, owner, peer, count string) edgeTable {
	return edgeTable{name, owner, peer, owner + ", " + peer + ", type, update_time", count}
}

// Served by the primary key.
const sqlEdgesOfOwner = `
SELECT {columns}
FROM {table}
WHERE {owner} = ? AND {peer} IN (`

// Served by idx_following_list, idx_follower_list.
const sqlNeighbours = `
SELECT {owner}, {peer}
FROM {table}
WHERE type = 1 AND {owner} IN (`

// spell fills a statement's names in.
func (t *edgeTable) spell(text string) string {
	return strings.NewReplacer("{table}", t.name, "{owner}", t.owner, "{peer}", t.peer, "{columns}", t.columns).Replace(text)
}

// spelled is a statement in the words of both sides, made once.
func spelled(text string) [2]string {
	return [2]string{
		storage.Forward: tableOf(storage.Forward).spell(text),
		storage.Inverse: tableOf(storage.Inverse).spell(text),
	}
}

var (
	edgesOfOwner = spelled(sqlEdgesOfOwner)
	neighbours   = spelled(sqlNeighbours)
)

// Edges implements [storage.EdgeReader].
func (s *Store) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	shardOf := func(p storage.Pair) int { return s.place.Of(side.Owner(p)) }
	return lookUp(s, pairs, s.maxPairs(side, pairs), shardOf, func(shard int, pairs []storage.Pair, found func(storage.Pair, storage.Edge)) error {
		text, args := s.edgesStatement(side, pairs)
		return s.query(ctx, "edges."+side.String(), shard, len(pairs), text, args, func(rows *sql.Rows) error {
			e, err := scanEdge(side, rows)
			found(e.Pair(), e)
			return err
		})
	})
}

// edgesStatement spells the look-up of pairs, more simply where they have one
// owner, which they mostly have.
func (s *Store) edgesStatement(side storage.Side, pairs []storage.Pair) (text string, args []any) {
	if haveOneOwner(side, pairs) {
		args = append(make([]any, 0, len(pairs)+1), int64(side.Owner(pairs[0])))
		for _, p := range pairs {
			args = append(args, int64(side.Peer(p)))
		}
		return edgesOfOwner[side] + marks(len(pairs)) + ")", args
	}
	args = make([]any, 0, 2*len(pairs))
	for _, p := range pairs {
		args = append(args, int64(side.Owner(p)), int64(side.Peer(p)))
	}
	return s.sql.edgesOf(tableOf(side), len(pairs)), args
}

func haveOneOwner(side storage.Side, pairs []storage.Pair) bool {
	return !slices.ContainsFunc(pairs, func(p storage.Pair) bool { return side.Owner(p) != side.Owner(pairs[0]) })
}

// maxPairs bounds one statement's pairs.
func (s *Store) maxPairs(side storage.Side, pairs []storage.Pair) int {
	if haveOneOwner(side, pairs) {
		return s.sql.maxKeys
	}
	return s.sql.maxPairs
}

func scanEdge(side storage.Side, rows *sql.Rows) (storage.Edge, error) {
	var owner, peer storage.UserID
	var e storage.Edge
	err := rows.Scan(&owner, &peer, &e.Type, &e.UpdateTime)
	p := side.Pair(owner, peer)
	e.From, e.To = p.From, p.To
	return e, err
}

// Neighbours implements [storage.EdgeReader].
func (s *Store) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return lookUp(s, owners, s.sql.maxKeys, s.place.Of, func(shard int, owners []storage.UserID, found func(storage.UserID, []storage.UserID)) error {
		lists := make(map[storage.UserID][]storage.UserID, len(owners))
		err := s.query(ctx, "neighbours."+side.String(), shard, len(owners), neighbours[side]+marks(len(owners))+")", arguments(owners), func(rows *sql.Rows) error {
			var owner, peer storage.UserID
			err := rows.Scan(&owner, &peer)
			lists[owner] = append(lists[owner], peer)
			return err
		})
		for _, owner := range owners {
			list := lists[owner]
			if !slices.IsSorted(list) { // the index gives them by time
				slices.Sort(list)
			}
			found(owner, list)
		}
		return err
	})
}
