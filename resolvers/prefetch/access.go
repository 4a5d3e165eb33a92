package prefetch

import (
	"cmp"
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/graph/why"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// Operation is what the requests of one operation share: a mutation has one for each of its fields, a subscription one for each event.
type Operation struct {
	Owner     any // who resolves its fields: they know its type
	Reads     selections.Reads
	Hidden    social.HiddenUsers // nil: nobody is
	Budget    social.Budget      // of the set answers of a request
	Cursors   *cursor.Sealer
	allowance social.Allowance // not of events: each has its own
}

type operationKey struct{}

// Attach gives a request what its fields share, and loaders that read from the source.
func Attach(ctx context.Context, source storage.Bundler, begin func() *Operation) context.Context {
	o, ok := ctx.Value(operationKey{}).(*Operation)
	if !ok || graphql.GetOperationContext(ctx).Operation.Operation != ast.Mutation { // it is not the next field of a mutation
		o = begin()
	}
	ctx = context.WithValue(loaders.Attach(ctx, source), operationKey{}, o)
	request := RequestOf(ctx)
	request.operations = &o.allowance
	request.why, _ = ctx.Value(why.Key{}).(*why.Reasons)
	return ctx
}

// NoticeEach keeps what a request notices for its answers, which are made later, if somebody asks. told is called with the context of each.
func NoticeEach(ctx context.Context) (told func(answer context.Context)) {
	if ctx.Value(why.Key{}) == nil {
		return func(context.Context) {}
	}
	request, own := RequestOf(ctx), new(why.Reasons)
	request.why = own
	return func(answer context.Context) {
		if request.why, _ = answer.Value(why.Key{}).(*why.Reasons); request.why == nil {
			return
		}
		for _, one := range own.All() {
			request.why.Add(one.Path, one.Rule, one.About)
		}
	}
}

// OperationOf is the operation of a request that has been attached.
func OperationOf(ctx context.Context) *Operation { return ctx.Value(operationKey{}).(*Operation) }

// Request is the state of one request.
type Request struct {
	once      sync.Once // makes the plan
	plan      *selections.Plan
	arguments []any // of the fields that the plan asks, see [Parsed]

	operations *social.Allowance // what the request may read; nil: it is an event's, which may read its own
	own        social.Allowance

	why *why.Reasons // nil: nobody asks

	signedIn storage.UserID // by the running mutation, see [SignIn]; 0: nobody was

	mu       sync.Mutex
	audience *social.Audience
	opens    loaders.SmallMap[social.List, bool] // which lists are open
	answers  loaders.SmallMap[PageName, any]     // the pages that have been read, see [Answer]
	shared   loaders.SmallMap[any, any]          // what fields have worked out, see [Shared]
}

// PageName names a page of a field of one object. Aliases have one name by their field [selections.Field.Same].
type PageName struct {
	Field *selections.Field
	Of    storage.PostID // the post, or the user without a number, or a list
}

// Answer is the page that has been read under a name.
func (r *Request) Answer(name PageName) (any, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers.Get(name)
}

// Put keeps a page that has been read.
func (r *Request) Put(name PageName, page any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers.Put(name, page)
}

// Join keeps a page that has been read, joined with the one that is kept, if there is one.
func (r *Request) Join(name PageName, page any, with func(before any) any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.answers.Get(name); ok {
		page = with(before)
	}
	r.answers.Put(name, page)
}

// Shared works something out once in a request for all aliases with equal keys. The type of the key says what is asked. work must not
// depend on a field, neither on its path nor on the selection below it. Answers that [loaders.Loaders.Together] works out run in turn,
// and none may wait for another: they share by [Keep].
func Shared[T any](ctx context.Context, key any, work func() (T, error)) (T, error) {
	request := RequestOf(ctx)
	if request.why != nil { // each alias has its reasons
		return work()
	}
	request.mu.Lock()
	request.shared.Add(key, sync.OnceValues(work))
	answer, _ := request.shared.Get(key)
	request.mu.Unlock()
	return answer.(func() (T, error))()
}

// Keep leaves what one of these has worked out to those that come later. None waits for another.
func Keep[T any](ctx context.Context, key any, work func() (T, error)) (T, error) {
	request := RequestOf(ctx)
	request.mu.Lock()
	known, ok := request.shared.Get(key)
	request.mu.Unlock()
	if ok && request.why == nil {
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

// RequestOf is the state of a request that has been attached.
func RequestOf(ctx context.Context) *Request { return loaders.Kept[Request](loaders.For(ctx)) }

// Running is the running field as the request's plan has it.
func Running(ctx context.Context) *selections.Field {
	return RequestOf(ctx).planOf(ctx).At(graphql.GetFieldContext(ctx))
}

// planOf is the plan of the request. The first call parses its arguments.
func (r *Request) planOf(ctx context.Context) *selections.Plan {
	r.once.Do(func() {
		if cost := limits.CostOf(graphql.GetOperationContext(ctx)); cost > 0 {
			r.operations.Beside(cost)
		}
		r.plan = selections.Of(ctx, OperationOf(ctx).Reads)
		r.arguments = make([]any, len(r.plan.Asked))
		for i, f := range r.plan.Asked {
			r.arguments[i] = f.Read.Parse(ctx, f)
		}
	})
	return r.plan
}

// arguments is the arguments of a field, or the error in them.
type arguments[T any] struct {
	value T
	err   error
}

// Parsed is what [selections.Read.Parse] returns: the arguments, or the error in them.
func Parsed[T any](value T, err error) any { return &arguments[T]{value, err} }

// failed is what is wrong with the arguments of a list of somebody: also that a cursor is of another one's.
func (p *arguments[T]) failed(ctx context.Context, of storage.PostID) error {
	if page, is := any(p.value).(interface {
		ofAnother(context.Context, storage.PostID) error
	}); is && p.err != nil {
		return apierr.All(p.err, page.ofAnother(ctx, of))
	}
	return p.err
}

// ArgumentsOf are the arguments of a field of the plan, as they have been parsed; zero if it has none. An error in them is
// reported when the field is resolved.
func ArgumentsOf[T any](r *Request, f *selections.Field) (value T, err error) {
	if f.Index < 0 {
		return value, nil
	}
	p := r.arguments[f.Index].(*arguments[T])
	return p.value, p.err
}

// RunningWith is the running field, with its arguments.
func RunningWith[T any](ctx context.Context) (f *selections.Field, value T, err error) {
	f = Running(ctx)
	value, err = ArgumentsOf[T](RequestOf(ctx), f)
	return f, value, err
}

// Access is what the viewer may see. The context is a long chain, so it looks up the values that it
// needs in it once for many questions. It is for one goroutine.
type Access struct {
	*Operation
	Viewer  storage.UserID // 0: the viewer is not signed in
	Loaders *loaders.Loaders
	Request *Request

	noticed social.Noticed                // of what is not shown; nil: nobody asks
	known   *social.Audience              // nil: not asked for yet
	last    [len(storage.AllSides)]opened // by side, the list that was asked about last: many relationships have one end
}

// opened is whether a list is open.
type opened struct {
	owner storage.UserID // 0: of none yet
	open  bool
}

// SignIn makes a user the viewer of the running mutation: the selection below its field is answered for the user who has signed in,
// and not for the sender. Fields below are resolved in the context that the mutation was called in, so the request keeps it.
func SignIn(ctx context.Context, user storage.UserID) { RequestOf(ctx).signedIn = user }

// ViewerOf is for whom a request is answered; 0: nobody is signed in.
func ViewerOf(ctx context.Context) storage.UserID {
	viewer, _ := identity.Of(ctx)
	return cmp.Or(RequestOf(ctx).signedIn, viewer.ID)
}

// AccessOf says what the viewer of a request may see. It notices what the running field does not show.
func AccessOf(ctx context.Context) *Access {
	l := loaders.For(ctx)
	e := &Access{Operation: OperationOf(ctx), Viewer: ViewerOf(ctx), Loaders: l, Request: loaders.Kept[Request](l)}
	if e.Request.why != nil {
		e.At(func(int) []ast.Path { return []ast.Path{graphql.GetPath(ctx)} }, 0)
	}
	return e
}

// This explains why something is not in an answer: every rule about users is asked of an [Access] or a [social.Audience], and these notice
// what they refuse. Those of a running field know its paths, and those of a page keep it with the page.

// At has what is refused from now on noticed at the paths of one of some objects, if somebody asks.
func (e *Access) At(paths func(i int) []ast.Path, i int) {
	if e.Request.why == nil {
		return
	}
	at := paths(i)
	e.noticed = func(rule why.Rule, about storage.UserID) {
		for _, path := range at {
			e.Request.why.Add(path, rule, about)
		}
	}
}

// IsAsked reports whether somebody asks for reasons.
func (e *Access) IsAsked() bool { return e.Request.why != nil }

// Notice notices that something about a user is refused by a rule.
func (e *Access) Notice(rule why.Rule, about storage.UserID) {
	if e.noticed != nil {
		e.noticed(rule, about)
	}
}

// Noticing is the access and the audience of a page, and the reasons why something is not on it; nil: nobody asks.
func (e *Access) Noticing(a *social.Audience) (*Access, *social.Audience, *why.Reasons) {
	if e.Request.why == nil {
		return e, a, nil
	}
	own, reasons := *e, new(why.Reasons)
	own.noticed = func(rule why.Rule, about storage.UserID) { reasons.Add(nil, rule, about) }
	return &own, a.Noticing(own.noticed), reasons
}

// closedBy is the rule by which a list is not open.
func (e *Access) closedBy(list social.List) why.Rule {
	a, _ := e.Audience()
	owner := e.Loaders.Users.Get(list.Owner).Value
	isLocked := owner.Locked
	owner.Locked = false
	switch {
	case a.InBlock(list.Owner):
		return why.Block
	case isLocked && owner.ListVisibility(list.Side) == storage.ToEveryone:
		return why.Locked
	}
	return why.Closed
}

// Left is what the request may still read.
func (e *Access) Left() *social.Allowance { return cmp.Or(e.Request.operations, &e.Request.own) }

// Graph answers to an audience, out of what the request may read.
func (e *Access) Graph(read loaders.Reader, a *social.Audience) *social.Graph {
	return social.New(read, e.Budget, a).Within(e.Left())
}

// IsAbsent reports whether a user is hidden from all other users. It reads nothing.
func IsAbsent(ctx context.Context, id storage.UserID) bool { return AccessOf(ctx).IsAbsent(id) }

// IsAbsent is [IsAbsent].
func (e *Access) IsAbsent(id storage.UserID) bool {
	absent := e.IsHidden(id) && (e.Viewer == 0 || e.Viewer != id)
	if absent {
		e.Notice(why.Hidden, id)
	}
	return absent
}

// IsViewer reports whether a user is the viewer.
func IsViewer(ctx context.Context, id storage.UserID) bool {
	viewer := ViewerOf(ctx)
	return viewer != 0 && viewer == id
}

// IsHidden reports whether a user is hidden from all others.
func (o *Operation) IsHidden(id storage.UserID) bool { return o.Hidden != nil && o.Hidden.Has(id) }

// AudienceOf is the audience of the answers. The first call reads the viewer's
// blocks. A mutation that changes them calls it only afterwards.
func AudienceOf(ctx context.Context) (*social.Audience, error) {
	request := RequestOf(ctx)
	if a := request.knownAudience(); a != nil && request.why == nil {
		return a, nil
	}
	e := AccessOf(ctx)
	a, err := e.Audience()
	if err == nil && e.noticed != nil {
		a = a.Noticing(e.noticed)
	}
	return a, err
}

// Audience is the audience of the request, which tells nobody whom it hides.
func (e *Access) Audience() (*social.Audience, error) {
	if e.known == nil {
		e.known = e.Request.knownAudience()
	}
	if e.known != nil {
		return e.known, nil
	}
	var blocks []storage.UserID
	if e.Viewer != 0 {
		r := loaders.Of(e.Loaders, storage.BlockLookups).Get(e.Viewer)
		if r.Err != nil {
			return nil, r.Err
		}
		blocks = r.Value
	}
	e.Request.mu.Lock()
	defer e.Request.mu.Unlock()
	if e.Request.audience == nil {
		e.Request.audience = social.NewAudience(e.Viewer, e.Hidden, blocks)
	}
	e.known = e.Request.audience
	return e.known, nil
}

func (r *Request) knownAudience() *social.Audience {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.audience
}

// fetchOpen reads what decides whether lists are open: the rows of their owners, and whether the
// viewer follows owners who show their lists to followers.
func (e *Access) fetchOpen(a *social.Audience, lists []social.List) {
	l := e.Loaders
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
	var owners IDSet
	for _, list := range lists {
		if list.Owner != viewer {
			owners.Add(list.Owner, struct{}{})
		}
	}
	return owners.Keys()
}

// ReadOpen reports which lists are open. No level has read their owners ahead.
func ReadOpen(ctx context.Context, lists []social.List) ([]bool, error) {
	a, err := AudienceOf(ctx)
	if err != nil {
		return nil, err
	}
	owners := storage.Each(lists, func(list social.List) storage.UserID { return list.Owner })
	l := loaders.For(ctx)
	l.Dispatch(l.Users.Ask(owners), l.Counts.Ask(owners)) // the counts are asked for next
	e, open := AccessOf(ctx), make([]bool, len(lists))
	e.fetchOpen(a, lists)
	for i, list := range lists {
		if open[i], err = e.IsOpen(list); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// AreOpen reports whether lists are all open, see IsOpen.
func (e *Access) AreOpen(lists ...social.List) (bool, error) {
	for _, list := range lists {
		if open, err := e.IsOpen(list); err != nil || !open {
			return false, err
		}
	}
	return true, nil
}

// IsOpen reports whether a list is open to the viewer. The rows that decide this have been fetched. The lists of a user who is unknown, or
// absent, are open: they are empty.
func (e *Access) IsOpen(list social.List) (open bool, err error) {
	if open, err = e.isOpen(list); err == nil && !open && e.noticed != nil {
		e.noticed(e.closedBy(list), list.Owner)
	}
	return open, err
}

func (e *Access) isOpen(list social.List) (open bool, err error) {
	if list.Owner != e.Viewer && e.IsHidden(list.Owner) { // not for the whole request: the owner may come back
		return true, nil
	}
	last := &e.last[list.Side]
	if last.owner == list.Owner && last.owner != 0 {
		return last.open, nil
	}
	e.Request.mu.Lock()
	open, known := e.Request.opens.Get(list)
	e.Request.mu.Unlock()
	if !known {
		if open, err = e.look(list); err != nil {
			return false, err
		}
		e.Request.mu.Lock()
		e.Request.opens.Put(list, open)
		e.Request.mu.Unlock()
	}
	*last = opened{list.Owner, open}
	return open, nil
}

// look is IsOpen for a list that the request has not asked about.
func (e *Access) look(list social.List) (bool, error) {
	a, err := e.Audience()
	if err != nil {
		return false, err
	}
	if a.Owns(list) {
		return true, nil
	}
	row := e.Loaders.Users.Get(list.Owner)
	if row.Err != nil {
		return false, row.Err
	}
	follows := false
	if a.NeedsFollow(list, row.Value) {
		r := loaders.Of(e.Loaders, storage.EdgeLookups[storage.Forward]).Get(storage.Pair{From: a.Viewer, To: list.Owner})
		if r.Err != nil {
			return false, r.Err
		}
		follows = r.Value.Type == storage.Following
	}
	return a.Opens(list, row.Value, follows), nil
}

// FetchShown reads what decides whether the audience sees posts of some authors. Their counts are often asked for next, and
// come in the same statement.
func (e *Access) FetchShown(a *social.Audience, authors []storage.UserID) error {
	authors = Distinct(authors)
	e.Loaders.Dispatch(e.Loaders.Users.Ask(authors), e.Loaders.Counts.Ask(authors))
	e.fetchOpen(a, storage.Each(authors, social.PostsOf))
	for _, author := range authors {
		if _, err := e.Shows(a, author); err != nil {
			return err
		}
	}
	return nil
}

// Shows reports whether the audience sees the posts and favorites of a user, who is neither hidden nor, unless the
// viewer follows it, locked. What decides this has been fetched.
func (e *Access) Shows(a *social.Audience, user storage.UserID) (bool, error) {
	if a.Hides(user) {
		return false, nil
	}
	return e.IsOpen(social.PostsOf(user))
}

// IsShown is Shows where an error has been reported already.
func (e *Access) IsShown(a *social.Audience, user storage.UserID) bool {
	shown, err := e.Shows(a, user)
	return shown && err == nil
}

// IDSet is ids, each once, in the order in which they came.
type IDSet = loaders.SmallMap[storage.UserID, struct{}]

// Distinct lists ids, each once.
func Distinct(ids []storage.UserID) []storage.UserID {
	var each IDSet
	for _, id := range ids {
		each.Add(id, struct{}{})
	}
	return each.Keys()
}
