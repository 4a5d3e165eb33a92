package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/finding"
	"kith/storage/reaction"
)

// bundles: look-ups of several kinds at once. A new kind also gets keys of its type, and its answers are compared with those to each key
// alone.
type bundles struct{ *harness }

func (s bundles) EachKeyIsAnsweredAsAlone(t *testing.T) {
	keys := s.bundleKeys(t)
	for i := range allKinds() {
		s.wantBundle(t, keys, 4*len(keys.users), func(at int) bool { return at == i }, nil)
	}
}

func (s bundles) NoKeysHaveNoResults(t *testing.T) {
	for i := range allKinds() {
		s.wantBundle(t, bundleKeys{}, 0, func(at int) bool { return at == i }, nil)
	}
}

// Of many keys a few are of something that is there.
func (s bundles) EachOfManyKeysIsAnsweredAsAlone(t *testing.T) {
	keys := s.bundleKeys(t)
	crowd := keys.among(s.ids(many))
	for at, kind := range allKinds() {
		if !kind.isSimple() {
			continue
		}
		b := new(storage.Bundle)
		got := fillBundle(b, crowd, many/2, func(i int) bool { return i == at }, nil)[0]
		s.store.Bundle(t.Context(), b)
		for i := range got.keys().Len() {
			at := i
			if i%knownApart > 0 {
				at = 1 // is unknown, too
			}
			want := s.alone(t, keys, kind, got.keys().Slice(at, at+1))
			if a, b := shown(got.results().Index(i)), shown(want.Index(0)); a != b {
				t.Fatalf("%s, key %d of %d, %+v:\ngot  %s\nwant %s", kind.name, i, many/2, got.keys().Index(i), a, b)
			}
		}
	}
}

func (s bundles) KindsTogetherAreAnsweredAsApart(t *testing.T) {
	keys := s.bundleKeys(t)
	s.wantBundle(t, keys, 4*len(keys.users), func(int) bool { return true }, nil)
	random := rand.New(rand.NewPCG(1, 2))
	for range 80 { // a few kinds with a few keys may be one statement
		few := 1 + random.IntN(5)
		s.wantBundle(t, keys, 1+random.IntN(3), func(int) bool { return random.IntN(15) < few }, random)
	}
}

func (s bundles) WhatIsAnsweredIsLeftAsItIs(t *testing.T) {
	keys := s.bundleKeys(t)
	const apart = 8 // so that each kind is answered while those are asked that may be read together with it
	for first := range apart {
		b := new(storage.Bundle)
		kinds := fillBundle(b, keys, 2, func(int) bool { return true }, nil)
		for i := first; i < len(kinds); i += apart {
			mark(kinds[i])
		}
		s.store.AtHand(b)
		s.store.Bundle(t.Context(), b)
		for i := first; i < len(kinds); i += apart {
			wantMark(t, kinds[i])
		}
	}
}

// mark answers a kind with an error that no store returns.
func mark(kind kind) {
	kind.lookup.MethodByName("Fail").Call([]reflect.Value{reflect.ValueOf(errMarked)})
}

var errMarked = errors.New("answered before")

func wantMark(t *testing.T, kind kind) {
	t.Helper()
	results := kind.results()
	for i := range results.Len() {
		if err, _ := results.Index(i).FieldByName("Err").Interface().(error); !errors.Is(err, errMarked) {
			t.Errorf("%s, key %d: it was answered again: %+v", kind.name, i, results.Index(i))
		}
	}
}

func (s bundles) AtHandIsAllOrNothing(t *testing.T) {
	keys := s.bundleKeys(t)
	for _, n := range []int{1, 3 * len(keys.users)} {
		got := new(storage.Bundle)
		kinds := fillBundle(got, keys, n, func(int) bool { return true }, nil)
		wanted := fillBundle(new(storage.Bundle), keys, n, func(int) bool { return true }, nil)
		for range 2 { // first when there may be nothing at hand, then when everything has been read
			s.store.AtHand(got)
			s.readEach(t, keys, wanted)
			for i, kind := range kinds {
				if !kind.results().IsNil() {
					wantSame(t, kind, wanted[i])
				}
			}
		}
	}
}

// Each kind is asked twice, and what it answers is changed in between.
func (s bundles) AnswersAreOfNow(t *testing.T) {
	keys, before, now := s.bundleKeys(t), new(storage.Bundle), new(storage.Bundle)
	n := 2 * len(keys.pairs)
	was := fillBundle(before, keys, n, func(int) bool { return true }, nil)
	is := fillBundle(now, keys, n, func(int) bool { return true }, nil)
	s.store.Bundle(t.Context(), before)

	user, other, nobody := keys.users[1], keys.users[2], keys.users[6]
	s.register(t, person(nobody))
	special := true
	s.mark(t, storage.Pair{From: user, To: keys.users[4]}, storage.MarkChange{Special: &special}, storage.EdgeMark{Special: true})
	s.act(t, storage.Pair{From: other, To: keys.users[4]}, storage.Accepted, 900)
	for _, side := range storage.AllSides {
		pair, back := storage.Pair{From: user, To: other}, storage.Pair{From: other, To: user}
		if side.HasItem() {
			pair.Item, back.Item = 1, 1
		}
		ends := storage.Pair{From: keys.users[3], To: other}
		s.apply(t, side, pair.Edge(storage.Following, at(1000)), back.Edge(storage.Following, at(1000)), ends.Edge(storage.None, at(1000)))
	}
	s.apply(t, storage.Forward, storage.Edge{From: user, To: nobody, Type: storage.Blocking, UpdateTime: at(1001)})
	s.see(t, keys.users, nobody, 1000)
	s.setState(t, nobody, storage.Deactivated, 1000, true)
	relations(s).change(t, keys.users[0], storage.ChangeOptions{}, relations(s).make(s.relationOf(keys.users), 1000, storage.DetailChange{EndsAt: at(5000)}))
	text := "edited"
	_, _, err := s.store.EditPost(t.Context(), keys.posts[2], storage.PostChange{Text: &text}, at(1000))
	wantIs(t, err, nil)
	comments(s).delete(t, keys.comments[1], user, true)
	userLists(s).createList(t, user, 1, "another")
	for _, owner := range keys.users[:6] { // on every shard
		wantIs(t, s.store.DeferImports(t.Context(), owner, at(6000)), nil)
		imports(s).add(t, imports(s).parts(owner, 2, 1, at(5000)))
		part := imports(s).parts(owner, 1, 1, at(5000))[0]
		part.Done, part.Refused = true, 2
		_, err := s.store.FinishImport(t.Context(), part)
		wantIs(t, err, nil)
	}
	s.post(t, keys.users[0], 2)
	for _, author := range keys.users[:6] { // on every shard
		s.post(t, author, 10)
	}

	s.store.Bundle(t.Context(), now)
	for i, kind := range is {
		check.That(t, kind.isOptional() || shown(kind.results()) != shown(was[i].results()), "%s: nothing has changed", kind.name)
	}
}

// see has some users see their feeds, and another be suspended and linked to an identity.
func (s bundles) see(t *testing.T, users []storage.UserID, suspended storage.UserID, n int) {
	for _, id := range users[:6] {
		_, err := s.store.See(t.Context(), storage.Seen{User: id}, at(n))
		wantIs(t, err, nil)
	}
	moderation(s).moderate(t, suspend(suspended, n, n+10), true)
	identities(s).link(t, identityOf(suspended), suspended)
}

func identityOf(user storage.UserID) storage.Identity {
	return storage.Identity{Issuer: "https://id.example.org", Subject: user.String()}
}

func (s bundles) relationOf(users []storage.UserID) storage.Pair {
	return storage.Pair{From: users[0], To: users[1], Item: 1}
}

func (s bundles) ErrorsAreOfEveryKey(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b := new(storage.Bundle)
	for _, kind := range fillBundle(b, s.bundleKeys(t), 3, func(int) bool { return true }, nil) {
		if !kind.isOptional() {
			defer func() {
				results := kind.results()
				must.That(t, results.Len() == kind.keys().Len(), "%s: %d results for %d keys", kind.name, results.Len(), kind.keys().Len())
				for i := range results.Len() {
					if err, _ := results.Index(i).FieldByName("Err").Interface().(error); !errors.Is(err, context.Canceled) {
						t.Errorf("%s, key %d: %+v under a context that has ended", kind.name, i, results.Index(i))
					}
				}
			}()
		}
	}
	s.store.Bundle(ended, b)
}

// wantBundle checks a bundle of some kinds, each with n keys.
func (s bundles) wantBundle(t *testing.T, keys bundleKeys, n int, asked func(int) bool, random *rand.Rand) {
	t.Helper()
	got, want := new(storage.Bundle), new(storage.Bundle)
	kinds := fillBundle(got, keys, n, asked, random)
	wanted := make([]kind, len(kinds))
	for i, kind := range kinds {
		wanted[i] = kind.askedBy(want)
		wanted[i].keys().Set(kind.keys())
	}
	s.store.Bundle(t.Context(), got)
	s.readEach(t, keys, wanted)
	for i, kind := range kinds {
		wantSame(t, kind, wanted[i])
	}
}

// readEach answers kinds key by key. Each key is read once, because nothing is written meanwhile.
func (s bundles) readEach(t *testing.T, keys bundleKeys, kinds []kind) {
	for _, k := range kinds {
		results := reflect.MakeSlice(k.results().Type(), 0, k.keys().Len())
		for i := range k.keys().Len() {
			results = reflect.AppendSlice(results, s.alone(t, keys, k, k.keys().Slice(i, i+1)))
		}
		k.results().Set(results)
	}
}

// alone answers one key of a kind.
func (s bundles) alone(t *testing.T, keys bundleKeys, k kind, key reflect.Value) (results reflect.Value) {
	t.Helper()
	name := fmt.Sprintf("%s %+v", k.name, key)
	if _, read := keys.alone[name]; !read {
		b := new(storage.Bundle)
		one := k.askedBy(b)
		one.keys().Set(key)
		s.store.Bundle(t.Context(), b)
		keys.alone[name] = one.results()
	}
	return keys.alone[name]
}

// wantSame compares the answers to a kind with those to each key alone. Optional values
// (see [kind.isOptional]) may be missing.
func wantSame(t *testing.T, got, want kind) {
	t.Helper()
	answers, wanted := got.results(), want.results()
	must.That(t, answers.Len() == got.keys().Len(), "%s: %d results for %d keys", got.name, answers.Len(), got.keys().Len())
	for i := range answers.Len() {
		if got.isOptional() {
			continue
		}
		if a, b := shown(answers.Index(i)), shown(wanted.Index(i)); a != b {
			t.Errorf("%s, key %+v:\ngot  %s\nwant %s", got.name, got.keys().Index(i), a, b)
		}
	}
}

// shown is a result as text, in which no list and an empty one are the same.
func shown(result reflect.Value) string { return fmt.Sprintf("%+v", result.Interface()) }

// bundleKeys are the keys of every type.
type bundleKeys struct {
	shards  int
	users   []storage.UserID
	handles []string
	pairs   []storage.Pair

	posts    []storage.PostID
	comments []storage.CommentID

	alone map[string]reflect.Value // the results of a kind for one key alone
}

// bundleKeys makes users who have relations with one another.
func (s bundles) bundleKeys(t *testing.T) (keys bundleKeys) {
	t.Helper()
	keys.shards, keys.alone = s.store.Shards(), map[string]reflect.Value{}
	users := s.newUsers(t, 6)
	for i, a := range users {
		for j, b := range users {
			if (i+j)%2 == 0 || i == j {
				continue
			}
			kind := storage.Following
			if i == 0 && j == 5 {
				kind = storage.Blocking
			}
			for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
				s.apply(t, side, storage.Edge{From: a.ID, To: b.ID, Type: kind, UpdateTime: at(10*i + j)})
			}
		}
	}
	special := true
	s.mark(t, storage.Pair{From: users[1].ID, To: users[2].ID}, storage.MarkChange{Special: &special}, storage.EdgeMark{Special: true})
	s.ask(t, storage.Pair{From: users[2].ID, To: users[4].ID}, 1, "hello")
	s.apply(t, storage.Inbox, storage.Pair{From: users[2].ID, To: users[4].ID}.Edge(storage.Pending, at(1)))
	s.apply(t, storage.FavoriteInbox, storage.Pair{From: users[2].ID, To: users[4].ID, Item: 1}.Edge(storage.Favorited, at(1)))
	ids := append(idsOf(users), s.id()) // nobody has the last id
	for _, id := range ids {
		keys.users = append(keys.users, id)
		keys.handles = append(keys.handles, person(id).Handle)
		keys.pairs = append(keys.pairs, storage.Pair{From: ids[1], To: id}, storage.Pair{From: id, To: ids[2]})
	}
	some := []storage.Pair{{}, s.relationOf(keys.users), {From: ids[2], To: ids[4]}} // a favorite, a relation and a request
	for i, u := range users {
		post := s.post(t, u.ID, i).PostID
		keys.posts = append(keys.posts, post, storage.PostID{Author: u.ID, Number: s.number()})
		keys.comments = append(keys.comments, s.comment(t, post, s.id(), i).CommentID)
		for _, by := range users[1:5] { // the user is in a block with one of the others
			favorites(s).favorite(t, by.ID, favorite(post, i), storage.ChangeOptions{})
			liked := storage.Pair{From: by.ID, To: post.Author, Item: post.Number}
			s.apply(t, storage.FavoriteInbox, liked.Edge(storage.Favorited, at(i)))
			some[0] = liked
		}
		relation := s.relationOf(keys.users[i:])
		relations(s).change(t, u.ID, storage.ChangeOptions{}, relations(s).make(relation, i, storage.DetailChange{EndsAt: at(4000 + i)}))
		s.apply(t, storage.RelationInbox, relation.Edge(storage.Related, at(i)))
		userLists(s).createList(t, u.ID, 1, "list")
		part := imports(s).add(t, imports(s).parts(u.ID, 1, 2, at(5000+i)))[1]
		part.Done, part.Refused = true, 1
		_, err := s.store.FinishImport(t.Context(), part)
		wantIs(t, err, nil)
	}
	s.see(t, keys.users, keys.users[0], 1)
	keys.pairs = append(some, keys.pairs...)
	return keys
}

// knownApart is how far from each other known keys are among many.
const knownApart = 50

// among are keys of so many users that nobody knows, of which a few are replaced with known ones. Their pairs have one end that is known.
func (k bundleKeys) among(strangers []storage.UserID) bundleKeys {
	crowd := bundleKeys{shards: k.shards}
	for i, id := range strangers {
		handle, pair := person(id).Handle, storage.Pair{From: id, To: k.users[2]}
		post, comment := storage.PostID{Author: id, Number: 1}, storage.CommentID{Author: id, Number: 1}
		if n := i / knownApart; i%knownApart == 0 {
			id, handle, pair = k.users[n%len(k.users)], k.handles[n%len(k.handles)], k.pairs[n%len(k.pairs)]
			post, comment = k.posts[n%len(k.posts)], k.comments[n%len(k.comments)]
		}
		crowd.users, crowd.handles, crowd.pairs = append(crowd.users, id), append(crowd.handles, handle), append(crowd.pairs, pair)
		crowd.posts, crowd.comments = append(crowd.posts, post), append(crowd.comments, comment)
	}
	return crowd
}

// of makes n keys of a type, some of them twice.
func (k bundleKeys) of(t reflect.Type, n int, random *rand.Rand) reflect.Value {
	keys := reflect.MakeSlice(reflect.SliceOf(t), 0, n)
	for i := range n {
		if i %= (2*n + 2) / 3; random != nil {
			i = random.IntN(100)
		}
		user := k.users[i%len(k.users)]
		var key any
		switch t {
		case reflect.TypeFor[storage.UserID]():
			key = user
		case reflect.TypeFor[string]():
			key = k.handles[i%len(k.handles)]
		case reflect.TypeFor[storage.Pair]():
			key = k.pairs[i%len(k.pairs)]
		case reflect.TypeFor[storage.PageQuery]():
			key = storage.PageQuery{Owner: user, Item: int64(i % 3), Limit: 2 + i%3, Backward: i%2 == 1}
		case reflect.TypeFor[storage.EdgeCountQuery]():
			key = storage.EdgeCountQuery{Owner: user, Limit: 1 + i%3}
		case reflect.TypeFor[storage.ListQuery]():
			key = storage.ListQuery{Owner: user, Longest: 1 + i%9}
		case reflect.TypeFor[storage.RowsQuery]():
			key = storage.RowsQuery{Side: storage.AllSides[i%len(storage.AllSides)], Owner: user, Limit: 2 + i%3}
		case reflect.TypeFor[storage.PostID]():
			key = k.posts[i%len(k.posts)]
		case reflect.TypeFor[storage.PlaceQuery]():
			key = storage.PlaceQuery{Of: []storage.PostID{{Author: user}, k.posts[i%len(k.posts)]}[i/2%2], Limit: 2 + i%3}
		case reflect.TypeFor[storage.LastQuery]():
			key = storage.LastQuery{Author: user, UpTo: at(1 + i%3)}
		case reflect.TypeFor[storage.ShardQuery[storage.Place]]():
			key = storage.ShardQuery[storage.Place]{Shard: i % k.shards, Limit: 2 + i%3}
		case reflect.TypeFor[finding.WordQuery]():
			key = finding.WordQuery{Prefix: k.handles[i%len(k.handles)], Limit: 2 + i%3}
		case reflect.TypeFor[finding.UserWord]():
			key = finding.UserWord{Prefix: k.handles[i%len(k.handles)][:1+i%2], Users: []storage.UserID{user}}
		case reflect.TypeFor[storage.ShardQuery[storage.UserID]]():
			key = storage.ShardQuery[storage.UserID]{Shard: i % k.shards, After: k.users[i%6], Limit: 2 + i%3}
		case reflect.TypeFor[storage.ShardQuery[storage.StateChange]]():
			key = storage.ShardQuery[storage.StateChange]{Shard: i % k.shards, After: storage.StateChange{At: at(i % 3)}, Limit: 2 + i%3}
		case reflect.TypeFor[storage.ShardQuery[storage.RelationRow]]():
			key = storage.ShardQuery[storage.RelationRow]{Shard: i % k.shards, Limit: 2 + i%3, Until: at(4000 + 500*(i%3))}
		case reflect.TypeFor[storage.RefusedQuery]():
			key = storage.RefusedQuery{ImportID: storage.ImportID{Owner: user, Number: 1}, From: int64(i % 2), To: int64(1 + i%2)}
		case reflect.TypeFor[storage.ShardQuery[storage.ImportPart]]():
			key = storage.ShardQuery[storage.ImportPart]{Shard: i % k.shards, Limit: 2 + i%3, Until: at(5000 + i%3)}
		case reflect.TypeFor[storage.Identity]():
			key = identityOf(user)
		case reflect.TypeFor[finding.PopularQuery]():
			key = finding.PopularQuery{Since: storage.Day(i % 3), Limit: 2 + i%9}
		case reflect.TypeFor[storage.CommentID]():
			key = k.comments[i%len(k.comments)]
		case reflect.TypeFor[reaction.Query]():
			key = reaction.Query{User: user, Kind: reaction.Kind(i % 3), Limit: 2 + i%3}
		case reflect.TypeFor[storage.Seen]():
			key = storage.Seen{User: user, Activity: i%2 == 1}
		case reflect.TypeFor[storage.OwnerKind]():
			key = storage.OwnerKind{Owner: user, Kind: int64(1 + i%2)}
		case reflect.TypeFor[storage.ListsQuery]():
			key = storage.ListsQuery{Owner: user, UpTo: int64(1 + i), Public: i%2 == 1, Limit: 2 + i%3}
		default:
			panic(fmt.Sprintf("the suite knows no keys of type %s: add them here", t))
		}
		keys = reflect.Append(keys, reflect.ValueOf(key))
	}
	return keys
}

// A kind is one look-up of a bundle.
type kind struct {
	name   string
	cached bool // only caches have it
	ask    func(*storage.Bundle) any
	lookup reflect.Value // *Lookup[K, V], once a bundle asks for it
}

func (k kind) keys() reflect.Value    { return k.lookup.Elem().FieldByName("Keys") }
func (k kind) results() reflect.Value { return k.lookup.Elem().FieldByName("Results") }

// isOptional reports whether a store may leave keys of this kind unanswered, because it answers only
// with what it has: packed lists, and what only caches have.
func (k kind) isOptional() bool { return k.cached || strings.HasPrefix(k.name, "packed.") }

// isSimple reports whether keys of this kind name one thing each, of which many are read with one statement.
func (k kind) isSimple() bool {
	switch k.askedBy(new(storage.Bundle)).keys().Interface().(type) {
	case []storage.UserID, []string, []storage.Pair, []storage.EdgeCountQuery, []storage.PostID, []storage.CommentID, []storage.Identity, []storage.Seen, []storage.OwnerKind:
		return !k.isOptional()
	}
	return false
}

func (k kind) askedBy(b *storage.Bundle) kind {
	k.lookup = reflect.ValueOf(k.ask(b))
	return k
}

func allKinds() (kinds []kind) {
	storage.EachKind(func(name string, ask func(*storage.Bundle) any, cached bool) {
		if _, ofSide := ask(new(storage.Bundle)).(*storage.Lookup[storage.PageQuery, []storage.Edge]); !ofSide || name != "pages.favorite" { // favorites have pages of their own
			kinds = append(kinds, kind{name: name, cached: cached, ask: ask})
		}
	})
	return kinds
}

// fillBundle asks for some kinds, with n keys each, and returns these kinds.
func fillBundle(b *storage.Bundle, keys bundleKeys, n int, asked func(int) bool, random *rand.Rand) (kinds []kind) {
	for at, kind := range allKinds() {
		if asked(at) {
			kind = kind.askedBy(b)
			kind.keys().Set(keys.of(kind.keys().Type().Elem(), n, random))
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
