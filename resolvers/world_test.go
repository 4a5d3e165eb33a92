package resolvers_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"kith/internal/apitest"
	"kith/storage"
)

// world is a drawn graph, with everything that decides what a viewer may see of it. Users are 1 …
// n. Its methods work out by brute force what one viewer may be answered.
type world struct {
	n       int
	follows map[storage.Pair]storage.Micros
	blocks  map[storage.Pair]bool
	absent  map[storage.UserID]bool
	opens   map[storage.UserID][2]storage.Visibility // of followings and followers
	locked  map[storage.UserID]bool
	waits   map[storage.Pair]bool // requests for follows; of these, and of follows and blocks, two users have one in each direction
	ended   map[storage.Pair]bool // what there was has ended
	special map[storage.Pair]bool // follows of the viewer that it has marked
	viewer  storage.UserID        // 0 if nobody is signed in
}

func drawWorld(seed uint64, n int) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{
		n: n, follows: map[storage.Pair]storage.Micros{}, blocks: map[storage.Pair]bool{},
		absent: map[storage.UserID]bool{}, opens: map[storage.UserID][2]storage.Visibility{},
		locked: map[storage.UserID]bool{}, waits: map[storage.Pair]bool{}, ended: map[storage.Pair]bool{}, special: map[storage.Pair]bool{},
		viewer: storage.UserID(r.IntN(n + 1)),
	}
	density := []int{15, 40, 80}[r.IntN(3)]
	for a := storage.UserID(1); a <= storage.UserID(n); a++ {
		for b := storage.UserID(1); b <= storage.UserID(n); b++ {
			p, back := storage.Pair{From: a, To: b}, storage.Pair{From: b, To: a}
			blocked := (a == w.viewer || b == w.viewer) && r.IntN(6) == 0 || r.IntN(60) == 0
			switch {
			case a == b || w.blocks[back]:
			case blocked && w.follows[back] == 0 && !w.waits[back]:
				w.blocks[p] = true
			case r.IntN(100) < density:
				w.follows[p] = apitest.Epoch + storage.Micros(r.IntN(n))
				w.special[p] = a == w.viewer && r.IntN(3) == 0
			case r.IntN(4) == 0:
				w.waits[p] = true
			default:
				w.ended[p] = true
			}
		}
		w.absent[a] = r.IntN(8) == 0 || a == w.viewer && r.IntN(3) == 0
		some := func() storage.Visibility {
			return []storage.Visibility{storage.ToEveryone, storage.ToEveryone, storage.ToFollowers, storage.ToNobody}[r.IntN(4)]
		}
		w.opens[a] = [2]storage.Visibility{some(), some()}
		w.locked[a] = r.IntN(4) == 0
	}
	return w
}

// fill makes the world in an empty store.
func (w *world) fill(store storage.Store) error {
	ctx := context.Background()
	var users []storage.User
	for _, id := range w.users() {
		users = append(users, storage.User{ID: id, Handle: "u" + id.String(), Name: "User " + id.String(), CreatedAt: apitest.Epoch})
	}
	for _, r := range store.CreateUsers(ctx, users) {
		if r.Err != nil {
			return r.Err
		}
	}
	var edges []storage.Edge
	for p, at := range w.follows {
		edges = append(edges, storage.Edge{From: p.From, To: p.To, Type: storage.Following, UpdateTime: at})
	}
	for p, waits := range w.waits {
		if waits {
			edges = append(edges, p.Edge(storage.Requested, apitest.Epoch))
		}
	}
	for p := range w.ended {
		edges = append(edges, p.Edge(storage.None, apitest.Epoch))
	}
	for p := range w.blocks {
		edges = append(edges, storage.Edge{From: p.From, To: p.To, Type: storage.Blocking, UpdateTime: apitest.Epoch})
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for _, r := range store.Apply(ctx, side, edges, storage.IfNewer) {
			if r.Err != nil {
				return r.Err
			}
		}
	}
	for p, yes := range w.special {
		if yes {
			if _, _, err := store.SetMark(ctx, p, storage.MarkChange{Special: &yes}); err != nil {
				return err
			}
		}
	}
	for id, opens := range w.opens {
		locked := w.locked[id]
		change := storage.ProfileChange{FollowingsVisibility: &opens[0], FollowersVisibility: &opens[1], Locked: &locked}
		if _, _, err := store.UpdateProfile(ctx, id, change, apitest.Epoch+1); err != nil {
			return err
		}
		if w.absent[id] {
			if _, err := store.SetState(ctx, id, storage.Deactivated, apitest.Epoch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) users() []storage.UserID {
	ids := make([]storage.UserID, w.n)
	for i := range ids {
		ids[i] = storage.UserID(i + 1)
	}
	return ids
}

// api is the API, with the viewer signed in.
func (w *world) api(t apitest.T, store storage.Store) *apitest.API {
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})
	if w.viewer != 0 {
		api = api.As(w.viewer)
	}
	return api
}

func (w *world) inBlock(a, b storage.UserID) bool {
	return w.blocks[storage.Pair{From: a, To: b}] || w.blocks[storage.Pair{From: b, To: a}]
}

// gone reports whether a user is hidden from the viewer, or does not exist.
func (w *world) gone(id storage.UserID) bool {
	return id != w.viewer && (w.absent[id] || id > storage.UserID(w.n))
}

func (w *world) hides(id storage.UserID) bool { return w.gone(id) || w.inBlock(w.viewer, id) }

// open reports whether the viewer may see a list.
func (w *world) open(side storage.Side, owner storage.UserID) bool {
	switch {
	case owner == w.viewer || w.gone(owner):
		return true
	case w.inBlock(w.viewer, owner):
		return false
	}
	switch w.opens[owner][side] {
	case storage.ToEveryone:
		if !w.locked[owner] {
			return true
		}
		fallthrough
	case storage.ToFollowers:
		return w.viewer != 0 && w.follows[storage.Pair{From: w.viewer, To: owner}] != 0
	}
	return false
}

func (w *world) isOn(side storage.Side, owner, id storage.UserID) bool {
	return !w.gone(owner) && w.follows[side.Pair(owner, id)] != 0
}

// sees reports whether the viewer may see an edge.
func (w *world) sees(p storage.Pair) bool {
	return w.open(storage.Forward, p.From) || w.open(storage.Inverse, p.To)
}

// row is a user of an answer with the time beside it, if any.
type row struct {
	id    storage.UserID
	since storage.Micros // 0: its edge has no time
}

// list returns the users of an owner's list who pass, newest first.
func (w *world) list(side storage.Side, owner storage.UserID, passes func(id storage.UserID) bool) []row {
	rows := []row{}
	for _, id := range w.users() {
		if at := w.follows[side.Pair(owner, id)]; at != 0 && !w.hides(id) && passes(id) {
			rows = append(rows, row{id, at})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.since, a.since), cmp.Compare(b.id, a.id)) })
	return rows
}

// closest sorts rows for the viewer.
func (w *world) closest(rows []row) []row {
	return w.ranked(rows, func(id storage.UserID) int {
		to := storage.Pair{From: w.viewer, To: id}
		switch {
		case w.special[to]:
			return 3
		case w.follows[to] == 0:
			return 0
		case w.follows[storage.Pair{From: id, To: w.viewer}] != 0:
			return 2
		}
		return 1
	})
}

func (w *world) mostFollowed(rows []row) []row { return w.ranked(rows, w.followers) }

// followers is the count, which is the same for every viewer.
func (w *world) followers(id storage.UserID) (n int) {
	for p := range w.follows {
		if p.To == id {
			n++
		}
	}
	return n
}

func (w *world) ranked(rows []row, rank func(storage.UserID) int) []row {
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(rank(b.id), rank(a.id)) })
	return rows
}

// byID returns the users who pass, by ascending id, without times.
func (w *world) byID(passes func(id storage.UserID) bool) []row {
	rows := []row{}
	for _, id := range w.users() {
		if !w.hides(id) && passes(id) {
			rows = append(rows, row{id: id})
		}
	}
	return rows
}

func anybody(storage.UserID) bool { return true }

func (w *world) isSpecial(id storage.UserID) bool {
	return w.special[storage.Pair{From: w.viewer, To: id}]
}

// with is the user whom others are compared with. nobody is an id that no user has.
const (
	with   = 3
	nobody = 9999
)

// connections are the fields below a user that are lists, with their expected contents. nil is null.
func (w *world) connections(id storage.UserID) map[string][]row {
	const forward, inverse = storage.Forward, storage.Inverse
	when := func(open bool, rows func() []row) []row {
		if !open {
			return nil
		}
		return rows()
	}
	on := func(side storage.Side, owner storage.UserID, want bool) func(storage.UserID) bool {
		return func(peer storage.UserID) bool { return w.isOn(side, owner, peer) == want }
	}
	both := w.open(forward, id) && w.open(inverse, id)
	common := func(side storage.Side, other storage.UserID) []row {
		return when(w.open(side, id) && w.open(side, other), func() []row {
			return w.byID(func(peer storage.UserID) bool { return w.isOn(side, id, peer) && w.isOn(side, other, peer) })
		})
	}
	recent := func(side storage.Side) []row {
		return when(w.open(side, id) && w.open(side, with), func() []row {
			return storage.Each(w.list(side, id, on(side, with, true)), func(r row) row { return row{id: r.id} })
		})
	}
	friends := when(both, func() []row { return w.list(forward, id, on(inverse, id, true)) })
	for i, f := range friends {
		friends[i].since = max(f.since, w.follows[storage.Pair{From: f.id, To: id}])
	}
	return map[string][]row{
		"followings":       when(w.open(forward, id), func() []row { return w.list(forward, id, anybody) }),
		"followers":        when(w.open(inverse, id), func() []row { return w.list(inverse, id, anybody) }),
		"friends":          friends,
		"notFollowingBack": when(both, func() []row { return w.list(forward, id, on(inverse, id, false)) }),
		"notFollowedBack":  when(both, func() []row { return w.list(inverse, id, on(forward, id, false)) }),
		"followersYouKnow": when(w.viewer != 0 && w.open(inverse, id), func() []row {
			return storage.Each(w.closest(w.list(forward, w.viewer, on(inverse, id, true))), func(r row) row { return row{id: r.id} })
		}),

		`followings(orderBy: CLOSEST)`:                        when(w.open(forward, id), func() []row { return w.closest(w.list(forward, id, anybody)) }),
		`followers(filter: {mutual: true}, orderBy: CLOSEST)`: when(both, func() []row { return w.closest(w.list(inverse, id, on(forward, id, true))) }),
		`followings(filter: {mutual: false, match: "usér"})`:  when(both, func() []row { return w.list(forward, id, on(inverse, id, false)) }),
		`followers(filter: {match: "1"}, orderBy: MOST_FOLLOWED)`: when(w.open(inverse, id), func() []row {
			return w.mostFollowed(w.list(inverse, id, func(peer storage.UserID) bool { return strings.HasPrefix(peer.String(), "1") }))
		}),
		`friends(filter: {match: "u", mutual: true})`: friends,
		`friends(filter: {match: "%"})`:               when(both, func() []row { return []row{} }),
		`followings(filter: {special: null})`:         when(w.open(forward, id), func() []row { return w.list(forward, id, anybody) }),
		`followings(filter: {special: true})`:         when(id == w.viewer, func() []row { return w.list(forward, id, w.isSpecial) }),
		`followings(filter: {special: false})`: when(id == w.viewer, func() []row {
			return w.list(forward, id, func(peer storage.UserID) bool { return !w.isSpecial(peer) })
		}),
		fmt.Sprintf("commonFollowings(with: %d)", with):   common(forward, with),
		fmt.Sprintf("commonFollowers(with: %d)", with):    common(inverse, with),
		fmt.Sprintf("commonFollowings(with: %d)", nobody): common(forward, nobody),

		fmt.Sprintf("commonFollowings(with: %d, orderBy: RECENT)", with): recent(forward),
		fmt.Sprintf("commonFollowers(with: %d, orderBy: RECENT)", with):  recent(inverse),
	}
}

// selectAll selects all of a list, with the time of its edges, if they have one.
func selectAll(field string) string {
	return ` { totalCount complete edges { ` + sinceOf(field) + ` node { id } } }`
}

// sinceOf selects the time that the edges of a list have, as followedAt.
func sinceOf(field string) string {
	switch name, _, _ := strings.Cut(field, "("); name {
	case "followings", "followers", "notFollowingBack", "notFollowedBack":
		return "followedAt"
	case "friends":
		return "followedAt: matchedAt"
	case "blockedUsers":
		return "followedAt: blockedAt"
	}
	return ""
}

// connection writes the expected answer of a list.
func connection(rows []row) string {
	if rows == nil {
		return "null"
	}
	edges := make([]string, len(rows))
	for i, r := range rows {
		at := ""
		if r.since != 0 {
			at = `"followedAt": "` + r.since.Time().Format("2006-01-02T15:04:05.000000Z") + `", `
		}
		edges[i] = fmt.Sprintf(`{%s"node": {"id": "%d"}}`, at, r.id)
	}
	return fmt.Sprintf(`{"totalCount": %d, "complete": true, "edges": [%s]}`, len(rows), strings.Join(edges, ", "))
}

// user writes the expected answer about a user, under the aliases of userFields.
func (w *world) user(id storage.UserID) string {
	if w.gone(id) {
		return "null"
	}
	var following, follower, friend int
	for p := range w.follows {
		if p.From == id {
			following++
			if w.follows[storage.Pair{From: p.To, To: p.From}] != 0 {
				friend++
			}
		}
		if p.To == id {
			follower++
		}
	}
	friends := "null"
	if w.open(storage.Forward, id) && w.open(storage.Inverse, id) {
		friends = fmt.Sprint(friend)
	}
	text := fmt.Sprintf(`{"id": "%d", "followingCount": %d, "followerCount": %d, "friendCount": %s`, id, following, follower, friends)
	lists := w.connections(id)
	for i, field := range userFields(lists) {
		text += fmt.Sprintf(`, "l%d": %s`, i, connection(lists[field]))
	}
	return text + "}"
}

func userFields(lists map[string][]row) []string {
	var fields []string
	for field := range lists {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	return fields
}

// selectUser selects everything that user writes.
func (w *world) selectUser() string {
	text := "{ id followingCount followerCount friendCount\n"
	for i, field := range userFields(w.connections(1)) {
		open, args, _ := strings.Cut(field, "(")
		args = strings.TrimSuffix(args, ")")
		text += fmt.Sprintf("l%d: %s(first: 100 %s)%s\n", i, open, args, selectAll(open))
	}
	return text + "}"
}

// relationship writes the expected answer about a relationship.
func (w *world) relationship(p storage.Pair) string {
	gone := p.From == p.To || w.gone(p.From) || w.gone(p.To)
	back := storage.Pair{From: p.To, To: p.From}
	if p.From != w.viewer && p.To != w.viewer && p.From != p.To &&
		(!w.open(storage.Forward, p.From) || !w.open(storage.Inverse, p.From) || !w.gone(p.To) && w.inBlock(w.viewer, p.To)) {
		return "null"
	}
	out, in := !gone && w.follows[p] != 0, !gone && w.follows[back] != 0
	status := map[[2]bool]string{{false, false}: "NONE", {true, false}: "FOLLOWING", {false, true}: "FOLLOWED_BY", {true, true}: "MUTUAL"}[[2]bool{out, in}]
	blocking, blockedBy := "null", "null"
	if p.From == w.viewer {
		blocking, blockedBy = fmt.Sprint(!gone && w.blocks[p]), fmt.Sprint(!gone && w.blocks[back])
	}
	waits, awaited := "null", "null"
	if p.From == w.viewer {
		waits, awaited = fmt.Sprint(!gone && w.waits[p]), fmt.Sprint(!gone && w.waits[back])
	}
	end := func(id storage.UserID) string {
		if w.gone(id) {
			return "null"
		}
		return fmt.Sprintf(`{"handle": "u%d"}`, id)
	}
	since := func(there bool, p storage.Pair) string {
		if !there {
			return "null"
		}
		return w.follows[p].Time().Format(`"2006-01-02T15:04:05.000000Z"`)
	}
	return fmt.Sprintf(`{"id": "rel_%d_%d", "status": %q, "following": %t, "followedBy": %t, "followedAt": %s, "followedByAt": %s,
		"blocking": %s, "blockedBy": %s, "followRequested": %s, "followRequestedBy": %s, "from": %s, "to": %s}`,
		p.From, p.To, status, out, in, since(out, p), since(in, back), blocking, blockedBy, waits, awaited, end(p.From), end(p.To))
}

const selectTie = ` { id status following followedBy followedAt followedByAt blocking blockedBy followRequested followRequestedBy from { handle } to { handle } }`
