package resolvers

import (
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/accounts/identity"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// Attach gives a request what its resolvers share: the loaders, and the resolver
// itself, for reads below fields. The viewer counts as active.
func (r *Resolver) Attach(ctx context.Context) context.Context {
	if viewer, ok := identity.Of(ctx); ok && r.Activity != nil {
		r.Activity.Note(viewer.ID)
	}
	o, ok := ctx.Value(operationKey{}).(*operation)
	if !ok || graphql.GetOperationContext(ctx).Operation.Operation != ast.Mutation { // it is not the next field of a mutation
		o = &operation{resolver: r, reads: readAhead}
	}
	return context.WithValue(loaders.Attach(ctx, r.reads()), operationKey{}, o)
}

// operation is what the requests of one operation share: a mutation has one for each of its fields.
type operation struct {
	resolver  *Resolver
	reads     selections.Reads
	allowance social.Allowance
}

type operationKey struct{}

// reads is what requests read from.
func (r *Resolver) reads() storage.Bundler {
	if r.Reads == nil {
		return r.Store
	}
	return r.Reads
}

func operationOf(ctx context.Context) *operation { return ctx.Value(operationKey{}).(*operation) }

func resolverOf(ctx context.Context) *Resolver { return operationOf(ctx).resolver }

// requestState is the state of one request.
type requestState struct {
	once      sync.Once // makes the plan
	plan      *selections.Plan
	arguments []any // of the fields that the plan asks, see [field]

	mu       sync.Mutex
	audience *social.Audience
	opens    loaders.SmallMap[social.List, bool] // which lists are open
	answers  loaders.SmallMap[answerName, any]   // the pages that have been read, see answerTo
	shared   loaders.SmallMap[any, any]          // what fields have worked out, see shared
}

// answerName names a page of a field of one object.
type answerName struct {
	field *selections.Field
	of    storage.PostID // the post, or the user without a number, or a list, see listName
}

// nameOf is one name for all aliases of a field.
func nameOf(f *selections.Field, user storage.UserID) answerName {
	return answerName{f.Same, userName(user)}
}

// userName names a user as what has lists.
func userName(id storage.UserID) storage.PostID { return storage.PostID{Author: id} }

// lookUp is the value that has been read under a name.
func lookUp[K comparable, V any](r *requestState, of *loaders.SmallMap[K, V], name K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return of.Get(name)
}

// shared works something out once in a request, for all aliases that ask for it: those with equal keys, whose type says what is asked.
// What is worked out knows no field: neither its path nor what is selected below it. Answers that [loaders.Loaders.Together] works out
// run in turn, and none may wait for another: they share by [keep].
func shared[T any](ctx context.Context, key any, work func() (T, error)) (T, error) {
	request := stateOf(ctx)
	request.mu.Lock()
	request.shared.Add(key, sync.OnceValues(work))
	answer, _ := request.shared.Get(key)
	request.mu.Unlock()
	return answer.(func() (T, error))()
}

// keep leaves what a set answer has worked out to those that come later, see [batch.answerSets]. None waits for another.
func keep[T any](ctx context.Context, key any, work func() (T, error)) (T, error) {
	request := stateOf(ctx)
	if known, ok := lookUp(request, &request.shared, key); ok {
		return known.(func() (T, error))()
	}
	value, err := work()
	if err == nil {
		request.mu.Lock()
		defer request.mu.Unlock()
		request.shared.Add(key, func() (T, error) { return value, nil })
	}
	return value, err
}

func stateOf(ctx context.Context) *requestState { return loaders.Kept[requestState](loaders.For(ctx)) }

// access is what the viewer may see. The context is a long chain, so access looks up the values that it
// needs in it once for many questions. It is for one goroutine.
type access struct {
	*operation
	viewer  storage.UserID // 0: the viewer is not signed in
	loaders *loaders.Loaders
	request *requestState

	known *social.Audience              // nil: not asked for yet
	last  [len(storage.AllSides)]opened // by side, the list that was asked about last: many relationships have one end
}

// opened is whether a list is open.
type opened struct {
	owner storage.UserID // 0: of none yet
	open  bool
}

func accessOf(ctx context.Context) *access {
	viewer, _ := identity.Of(ctx)
	l := loaders.For(ctx)
	return &access{operation: operationOf(ctx), viewer: viewer.ID, loaders: l, request: loaders.Kept[requestState](l)}
}

// isAbsent reports whether a user is hidden from all other users. It reads nothing.
func isAbsent(ctx context.Context, id storage.UserID) bool { return accessOf(ctx).isAbsent(id) }

func (e *access) isAbsent(id storage.UserID) bool {
	return e.resolver.isHidden(id) && (e.viewer == 0 || e.viewer != id)
}

// isViewer reports whether a user is the viewer.
func isViewer(ctx context.Context, id storage.UserID) bool {
	viewer, ok := identity.Of(ctx)
	return ok && viewer.ID == id
}

func (r *Resolver) isHidden(id storage.UserID) bool {
	return r.HiddenUsers != nil && r.HiddenUsers.Has(id)
}

// audienceOf is the audience of the answers. The first call reads the viewer's
// blocks. A mutation that changes them calls it only afterwards.
func audienceOf(ctx context.Context) (*social.Audience, error) {
	if a := stateOf(ctx).knownAudience(); a != nil {
		return a, nil
	}
	return accessOf(ctx).audience()
}

func (e *access) audience() (*social.Audience, error) {
	if e.known == nil {
		e.known = e.request.knownAudience()
	}
	if e.known != nil {
		return e.known, nil
	}
	var blocks []storage.UserID
	if e.viewer != 0 {
		r := loaders.Of(e.loaders, storage.BlockLookups).Get(e.viewer)
		if r.Err != nil {
			return nil, r.Err
		}
		blocks = r.Value
	}
	e.request.mu.Lock()
	defer e.request.mu.Unlock()
	if e.request.audience == nil {
		e.request.audience = social.NewAudience(e.viewer, e.resolver.HiddenUsers, blocks)
	}
	e.known = e.request.audience
	return e.known, nil
}

func (r *requestState) knownAudience() *social.Audience {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.audience
}

// bothLists are all lists of a user.
func bothLists(id storage.UserID) []social.List {
	return []social.List{{Side: storage.Forward, Owner: id}, {Side: storage.Inverse, Owner: id}}
}

// fetchOpen reads what decides whether lists are open: the rows of their owners, and whether the
// viewer follows owners who show their lists to followers.
func (e *access) fetchOpen(a *social.Audience, lists []social.List) {
	l := e.loaders
	l.Users.Fetch(ownersOf(a.Viewer, lists))
	if a.Viewer == 0 {
		return
	}
	var follows []storage.Pair
	for _, list := range lists {
		if !a.Owns(list) && a.NeedsFollow(list, l.Users.Get(list.Owner).Value) {
			follows = append(follows, storage.Pair{From: a.Viewer, To: list.Owner})
		}
	}
	if len(follows) > 0 {
		loaders.Of(l, storage.EdgeLookups[storage.Forward]).Fetch(follows)
	}
}

// ownersOf lists the owners of lists, each once, without the viewer: their rows tell whether the lists may be seen.
func ownersOf(viewer storage.UserID, lists []social.List) []storage.UserID {
	var owners idSet
	for _, list := range lists {
		if list.Owner != viewer {
			owners.Add(list.Owner, struct{}{})
		}
	}
	return owners.Keys()
}

// isOpen reports whether lists are all open to the viewer. The rows that decide this have
// been fetched. The lists of a user who is unknown, or absent, are open: they are
// empty.
func isOpen(ctx context.Context, lists ...social.List) (bool, error) {
	e := accessOf(ctx)
	for _, list := range lists {
		if open, err := e.isOpen(list); err != nil || !open {
			return false, err
		}
	}
	return true, nil
}

// readOpen reports which lists are open. No level has read their owners ahead.
func readOpen(ctx context.Context, lists []social.List) ([]bool, error) {
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	owners := storage.Each(lists, func(list social.List) storage.UserID { return list.Owner })
	l := loaders.For(ctx)
	l.Dispatch(l.Users.Ask(owners), l.Counts.Ask(owners)) // the counts are asked for next
	e, open := accessOf(ctx), make([]bool, len(lists))
	e.fetchOpen(a, lists)
	for i, list := range lists {
		if open[i], err = e.isOpen(list); err != nil {
			return nil, err
		}
	}
	return open, nil
}

func (e *access) isOpen(list social.List) (open bool, err error) {
	last := &e.last[list.Side]
	if last.owner == list.Owner && last.owner != 0 {
		return last.open, nil
	}
	open, known := lookUp(e.request, &e.request.opens, list)
	if !known {
		if open, err = e.look(list); err != nil {
			return false, err
		}
		e.request.mu.Lock()
		e.request.opens.Put(list, open)
		e.request.mu.Unlock()
	}
	*last = opened{list.Owner, open}
	return open, nil
}

// look is isOpen for a list that the request has not asked about.
func (e *access) look(list social.List) (bool, error) {
	a, err := e.audience()
	if err != nil {
		return false, err
	}
	if a.Owns(list) || a.IsAbsent(list.Owner) {
		return true, nil
	}
	row := e.loaders.Users.Get(list.Owner)
	if row.Err != nil {
		return false, row.Err
	}
	follows := false
	if a.NeedsFollow(list, row.Value) {
		r := loaders.Of(e.loaders, storage.EdgeLookups[storage.Forward]).Get(storage.Pair{From: a.Viewer, To: list.Owner})
		if r.Err != nil {
			return false, r.Err
		}
		follows = r.Value.Type == storage.Following
	}
	return a.Opens(list, row.Value, follows), nil
}

// fetchShown reads what decides whether the audience sees posts of some authors. Their counts are often asked for next, and
// come in the same statement.
func (e *access) fetchShown(a *social.Audience, authors []storage.UserID) error {
	authors = distinctOf(authors)
	e.loaders.Dispatch(e.loaders.Users.Ask(authors), e.loaders.Counts.Ask(authors))
	e.fetchOpen(a, storage.Each(authors, social.PostsOf))
	for _, author := range authors {
		if _, err := e.shows(a, author); err != nil {
			return err
		}
	}
	return nil
}

// shows reports whether the audience sees the posts and favorites of a user, who is neither hidden nor, unless the
// viewer follows it, locked. What decides this has been fetched.
func (e *access) shows(a *social.Audience, user storage.UserID) (bool, error) {
	if a.Hides(user) {
		return false, nil
	}
	return e.isOpen(social.PostsOf(user))
}

// isShown is shows where an error has been reported already.
func (e *access) isShown(a *social.Audience, user storage.UserID) bool {
	shown, err := e.shows(a, user)
	return shown && err == nil
}

var sides = [...]storage.Side{storage.Forward, storage.Inverse}

// isBetweenOthers reports whether the visibility of a relationship has to be checked: the viewer
// may see its own relationships, and a relationship of a user with itself is empty.
func (e *access) isBetweenOthers(p storage.Pair) bool {
	return p.From != e.viewer && p.To != e.viewer && p.From != p.To
}

// isViewers reports whether a relationship is the viewer's own, towards a user who is not a hidden
// user.
func (e *access) isViewers(p storage.Pair) bool {
	return e.viewer != 0 && p.From == e.viewer && p.To != e.viewer && !e.isAbsent(p.To)
}

// isVisible reports whether the viewer may see a relationship. A relationship between two other
// users shows what is on both lists of the first user, so both lists have to be open, whatever the
// second user shows: otherwise a viewer could read a closed list by asking about every user who may
// be on it. A user in a block with the viewer is hidden here as in lists.
func (e *access) isVisible(p storage.Pair) (bool, error) {
	if !e.isBetweenOthers(p) {
		return true, nil
	}
	a, err := e.audience()
	if err != nil || a.InBlock(p.To) && !a.IsAbsent(p.To) {
		return false, err
	}
	for _, side := range sides {
		if open, err := e.isOpen(social.List{Side: side, Owner: p.From}); err != nil || !open {
			return false, err
		}
	}
	return true, nil
}

// idSet is ids, each once, in the order in which they came.
type idSet = loaders.SmallMap[storage.UserID, struct{}]

// distinctOf lists ids, each once.
func distinctOf(ids []storage.UserID) []storage.UserID {
	var each idSet
	for _, id := range ids {
		each.Add(id, struct{}{})
	}
	return each.Keys()
}

func startsOf(rows []storage.Edge) []storage.UserID {
	return storage.Each(rows, func(row storage.Edge) storage.UserID { return row.From })
}
