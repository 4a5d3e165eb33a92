package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Pairs of one owner. Served by the primary key.
var sqlEdgesOfOwner = db.ForSides(`
SELECT {owner}, {peer}, type, update_time
FROM {table}
WHERE {owner} = ? AND {peer} IN (?)`, storage.Sides[:]...)

// Any pairs. Served by the primary key.
var sqlEdges = db.Both(`
WITH wanted(o, p{, n}) AS (VALUES (?, ?{, ?}))
SELECT {owner}, {peer}, type, update_time{, post_id}
FROM wanted
CROSS JOIN {table} ON {owner} = o AND {peer} = p{ AND post_id = n}`).ForSides(storage.AllSides[:]...)

// readEdges answers [storage.EdgeLookups].
func (s *Store) readEdges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	shardOf := func(p storage.Pair) int { return s.shards.Of(side.Owner(p)) }
	return db.LookUp(s.db, pairs, s.maxEdges(side, pairs), shardOf, func(shard int, pairs []storage.Pair, found func(storage.Pair, storage.Edge)) error {
		text, args := s.edgesStatement(side, pairs)
		return s.db.Query(ctx, "edges."+side.String(), shard, len(pairs), text, args, eachEdge(side, func(e storage.Edge) { found(e.Pair(), e) }))
	})
}

// edgesStatement writes the look-up of pairs. The statement is simpler if they have one owner, as
// they mostly do.
func (s *Store) edgesStatement(side storage.Side, pairs []storage.Pair) (text string, args []any) {
	switch owners := ownersIn(side, pairs); {
	case side.HasItem():
	case len(owners) == 1 && len(pairs) <= s.sql.MaxKeys:
		return s.edgesOfOwner(side, owners[0], pairs)
	case len(pairs) > s.sql.MaxPairs:
		return s.edgesOfOwners(side, owners, pairs)
	}
	pairs = db.Filled(pairs)
	return db.Listed(s.sql.Text(sqlEdges[side]), len(pairs)), pairArguments(side, pairs)
}

// pairArguments are the owners and peers of pairs, and their items where they have some.
func pairArguments(side storage.Side, pairs []storage.Pair) []any {
	args := make([]any, 0, 3*len(pairs))
	for _, p := range pairs {
		args = append(args, int64(side.Owner(p)), int64(side.Peer(p)))
		if side.HasItem() {
			args = append(args, p.Item)
		}
	}
	return args
}

// edgesOfOwners looks up many pairs of few owners: a UNION ALL of one look-up for each
// owner, or for every maxKeys of its peers. So the edges of many users with the same thousand
// others, as in followersYouKnow, take one statement.
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
	return db.In(sqlEdgesOfOwner[side], peersOf(side, owner, pairs), int64(owner))
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
	maxDense = 20_000 // pairs; an engine takes 32,766 values, and 500 SELECTs in a UNION ALL
	dense    = 32     // pairs of an owner, on average, that are worth a SELECT of their own
)

// maxPairs bounds one statement's pairs. MariaDB does not take a list of 1,000 values for ranges of a key, and
// pairs of favorites have three values each.
func (s *Store) maxPairs(side storage.Side, pairs []storage.Pair) int {
	if side.HasItem() {
		return s.sql.MaxPairs * 2 / 3
	}
	if haveOneOwner(side, pairs) {
		return s.sql.MaxKeys
	}
	return s.sql.MaxPairs
}

// maxEdges is maxPairs for edgesStatement, which takes more pairs if there are few owners.
func (s *Store) maxEdges(side storage.Side, pairs []storage.Pair) int {
	few := s.maxPairs(side, pairs)
	if len(pairs) <= few || side.HasItem() {
		return few
	}
	owners := len(ownersIn(side, pairs))
	if owners*dense <= len(pairs) && owners+maxDense/s.sql.MaxKeys <= 500 {
		return maxDense
	}
	return few
}

// eachEdge reads rows of owner, peer, type and update_time, and of post_id on sides that have it.
func eachEdge(side storage.Side, take func(storage.Edge)) func(*sql.Rows) error {
	numbers := 4
	if side.HasItem() {
		numbers++
	}
	row := db.NewNumbers(numbers, 0)
	return row.Each(func() {
		p := side.Pair(storage.UserID(row.At(0)), storage.UserID(row.At(1)))
		if side.HasItem() {
			p.Item = row.At(4)
		}
		take(p.Edge(storage.EdgeType(row.At(2)), storage.Micros(row.At(3))))
	})
}

// A block is on the shards of both users: in following for the one who blocks, in follower for the
// one who is blocked. So one statement on a user's own shard finds all blocks.
//
// Served by idx_following_list and idx_follower_list, by order: blocks are few, and most
// rows of a user are not.
const sqlBlocks = `
SELECT from_user_id, to_user_id
FROM following /*! FORCE INDEX (idx_following_list) */
WHERE type = 2 AND from_user_id IN (?)
UNION ALL
SELECT to_user_id, from_user_id
FROM follower /*! FORCE INDEX (idx_follower_list) */
WHERE type = 2 AND to_user_id IN (?) LIMIT ?`

// blocksAtOnce is how many blocks one statement reads. Millions may block one user, and would take longer than a look-up may.
const blocksAtOnce = 200_000

// readBlocks answers [storage.BlockLookups].
func (s *Store) readBlocks(ctx context.Context, users []storage.UserID) []storage.Result[[]storage.UserID] {
	return db.LookUp(s.db, users, s.sql.MaxKeys, s.shards.Of, func(shard int, users []storage.UserID, found func(storage.UserID, []storage.UserID)) error {
		ids := db.Arguments(users)
		read, err := s.listUsers(ctx, "blocks", shard, users, db.Listed(sqlBlocks, len(users)), append(append(ids, ids...), s.blocksAtOnce), found)
		for i := 0; i < len(users) && err == nil && read == s.blocksAtOnce; i++ {
			var all []storage.UserID
			all, err = s.blocksInPages(ctx, users[i])
			found(users[i], all)
		}
		return err
	})
}

// blocksInPages reads the blocks of one user, however many there are.
func (s *Store) blocksInPages(ctx context.Context, user storage.UserID) (all []storage.UserID, err error) {
	for _, side := range db.Follows {
		q := storage.PageQuery{Owner: user, Type: storage.Blocking, Limit: s.blocksAtOnce}
		for more := true; more; {
			page := s.readPages(ctx, side, []storage.PageQuery{q})[0]
			if page.Err != nil {
				return nil, page.Err
			}
			for _, e := range page.Value {
				all, q.After = append(all, side.Peer(e.Pair())), side.Position(e)
			}
			more = len(page.Value) == q.Limit
		}
	}
	return storage.Distinct(all), nil
}

// listUsers runs a look-up whose rows are (user, member) and gives every user its
// members, ascending, each once. It returns how many rows there were.
func (s *Store) listUsers(ctx context.Context, lookup string, shard int, users []storage.UserID, text string, args []any, found func(storage.UserID, []storage.UserID)) (read int, err error) {
	lists := make(map[storage.UserID][]storage.UserID, len(users))
	err = s.db.Query(ctx, lookup, shard, len(users), text, args, db.EachEntry(db.TwoColumns, func(user, member storage.UserID) {
		read++
		lists[user] = append(lists[user], member)
	}))
	for _, user := range users {
		found(user, storage.Distinct(lists[user]))
	}
	return read, err
}

// peersOf lists the peers in pairs of one owner.
func peersOf(side storage.Side, owner storage.UserID, pairs []storage.Pair) []storage.UserID {
	peers := make([]storage.UserID, 0, len(pairs))
	for _, p := range pairs {
		if side.Owner(p) == owner {
			peers = append(peers, side.Peer(p))
		}
	}
	return peers
}
