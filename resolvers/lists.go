package resolvers

import (
	"context"
	"time"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// listKinds are the cursors of followings and followers.
var listKinds = [...]cursor.Kind{storage.Forward: cursor.Followings, storage.Inverse: cursor.Followers}

// query asks for the page.
func (p pageArguments) query(owner storage.UserID) storage.PageQuery {
	return storage.PageQuery{Owner: owner, Limit: p.size, After: positionAt(p.after), Before: positionAt(p.before), Backward: p.backward}
}

// infoOf reports what is on both sides of the page of edges. If a cursor was given, something is
// assumed to be behind it.
func (p pageArguments) infoOf(r *Resolver, side storage.Side, more bool, edges []storage.Edge) *model.PageInfo {
	var ends []string
	if n := len(edges); n > 0 {
		ends = []string{cursorOf(side, edges[0]), cursorOf(side, edges[n-1])}
	}
	info := r.pageInfo(ends, more, nil)
	p.around(info, more, p.after != storage.Place{}, p.before != storage.Place{})
	return info
}

func cursorOf(side storage.Side, e storage.Edge) string {
	return spell(unsealed, listKinds[side], placeAt(storage.PositionOf(side, e)))
}

// followEdge is an edge of a plain list.
func followEdge(side storage.Side, e storage.Edge, node *model.User) *model.FollowEdge {
	return &model.FollowEdge{Cursor: cursorOf(side, e), Node: node, FollowedAt: e.UpdateTime.Time()}
}

// listField is a plain list of a user. If users of it are selected, it has a set answer.
type listField struct {
	*setField[storage.UserID]
	side storage.Side
}

func plainList(side storage.Side) *listField {
	parse := func(ctx context.Context, f *selections.Field) (a setArguments, err error) {
		filter, _ := f.Argument(ctx, "filter").(map[string]any)
		if order, _ := f.Argument(ctx, "orderBy").(string); len(filter) > 0 || order != string(model.ListOrderRecent) {
			if a.choice, err = choiceOf(ctx, f); err != nil {
				return a, err
			}
		}
		kind := listKinds[side]
		if a.isPart = a.choice != nil; a.isPart {
			kind = 0
		}
		a.pageArguments, err = pageOf(ctx, f, kind)
		return a, err
	}
	ahead := func(_ context.Context, b *batch, args setArguments, users []storage.UserID) {
		b.addOpens(side, users)
		if args.choice.mutual != nil {
			b.addOpens(side.Other(), users)
		}
	}
	return &listField{setOf(parse, ahead, func(q setQuestion, ctx context.Context) (page, error) { return q.selected(ctx, side, false) }), side}
}

// Parse implements [selections.Read].
func (l *listField) Parse(ctx context.Context, f *selections.Field) any {
	return parsedAs(l.parse(ctx, f))
}

func (l *listField) ask(ctx context.Context, b *batch, f *selections.Field, users []storage.UserID) {
	args, err := argument[setArguments](b.request, f)
	if err != nil || args.choice != nil {
		l.setField.ask(ctx, b, f, users)
		return
	}
	b.addOpens(l.side, users)
	n, p := pageNeedsOf(f), b.lists[l.side]
	if p == nil {
		p = &listsOfSide{side: l.side}
		b.lists[l.side] = p
	}
	if n.total {
		b.counts = joined(b.counts, users)
	}
	p.aliases = append(p.aliases, listed{f, users})
	for _, id := range users {
		name := nameOf(f, id)
		one, known := p.pages.Get(name)
		if !known {
			one = &page{complete: true}
			if before, ok := lookUp(b.request, &b.request.answers, name); ok { // an alias on another level
				one.needs = before.(anyPage).base().needs
			}
			p.pages.Add(name, one)
		}
		one.needs = one.needs.with(n)
	}
}

// listed is a plain list of some users.
type listed struct {
	*selections.Field
	owners []storage.UserID
}

// listsOfSide are plain lists of one side on one level.
type listsOfSide struct {
	side    storage.Side
	aliases []listed
	pages   loaders.SmallMap[answerName, *page]
	queries []storage.PageQuery // for those of which rows are selected
	ahead   []storage.PageQuery // what is read first for them
	read    *loaders.Asked[storage.PageQuery, []storage.Edge]
}

// askAhead asks for what is read first. If the hidden users are not known yet, pages are completed later.
func (p *listsOfSide) askAhead(asked []loaders.Question, r *requestState, l *loaders.Loaders, a *social.Audience) []loaders.Question {
	if p == nil {
		return asked
	}
	for _, name := range p.pages.Keys() {
		if one, _ := p.pages.Get(name); one.needs.rows {
			args, _ := argument[setArguments](r, name.field)
			q := args.query(name.of.Author)
			p.queries, p.ahead = append(p.queries, q), append(p.ahead, a.Ahead(q))
		}
	}
	if len(p.ahead) > 0 {
		p.read = loaders.Of(l, storage.PageLookups[p.side]).Ask(p.ahead)
		asked = append(asked, p.read)
	}
	return asked
}

// showTo completes the pages that are open to the audience, without hidden users, and the lengths of the lists. The users on them are next.
func (p *listsOfSide) showTo(ctx context.Context, b *batch, a *social.Audience) {
	if p == nil {
		return
	}
	graph := social.New(b.loaders.Reader(), b.resolver.Budget, a)
	var results, open []storage.Result[[]storage.Edge]
	if p.read != nil {
		results = p.read.Results()
	}
	var names []answerName // of the open pages with rows
	queries, ahead := p.queries[:0], p.ahead[:0]
	var owners loaders.SmallMap[storage.UserID, int] // of the open lists that are counted
	k := 0
	for _, name := range p.pages.Keys() {
		one, _ := p.pages.Get(name)
		isOpen, err := b.isOpen(social.List{Side: p.side, Owner: name.of.Author})
		one.err, one.isClosed = err, !isOpen
		if one.needs.total && isOpen {
			owners.Add(name.of.Author, len(owners.Keys()))
		}
		if !one.needs.rows {
			continue
		}
		if isOpen {
			names, open = append(names, name), append(open, results[k])
			queries, ahead = append(queries, p.queries[k]), append(ahead, p.ahead[k])
		}
		k++
	}
	shown := graph.Show(ctx, p.side, queries, ahead, open)
	for i, name := range names {
		one, _ := p.pages.Get(name)
		args, _ := argument[setArguments](b.request, name.field)
		one.take(b.resolver, p.side, args.pageArguments, shown[i])
	}
	if ids := owners.Keys(); len(ids) > 0 {
		p.count(graph.Sizes(ctx, p.side, ids), &owners)
	}
	b.request.mu.Lock()
	defer b.request.mu.Unlock()
	for _, name := range p.pages.Keys() {
		one, _ := p.pages.Get(name)
		b.request.answers.Put(name, one)
	}
	for _, list := range p.aliases {
		items := list.Below[0].Items
		if items == nil {
			continue
		}
		var ids []storage.UserID
		for _, owner := range list.owners {
			one, _ := p.pages.Get(nameOf(list.Field, owner))
			ids = joined(ids, one.users)
		}
		if len(ids) > 0 {
			b.next = append(b.next, wantedUsers{ids: ids, on: items})
		}
	}
}

// count tells pages how long their lists are.
func (p *listsOfSide) count(sizes []storage.Result[social.Size], owners *loaders.SmallMap[storage.UserID, int]) {
	for _, name := range p.pages.Keys() {
		one, _ := p.pages.Get(name)
		if at, counted := owners.Get(name.of.Author); counted && one.needs.total {
			size := sizes[at]
			one.total = storage.Result[int64]{Value: size.Value.Total, Err: size.Err}
			one.complete = one.complete && (size.Value.Complete || size.Err != nil)
		}
	}
}

// take makes a page of what is shown of a plain list.
func (p *page) take(r *Resolver, side storage.Side, args pageArguments, result storage.Result[social.Shown]) {
	shown := result.Value
	p.err, p.complete = result.Err, shown.Complete
	p.ofEdges(side, shown.Edges)
	if p.needs.cursors {
		p.cursors = storage.Each(shown.Edges, func(e storage.Edge) string { return cursorOf(side, e) })
	}
	if !p.needs.around {
		return
	}
	p.info = args.infoOf(r, side, shown.More, shown.Edges)
	if !shown.Complete && p.err == nil {
		goOn := spell(r.Cursors, listKinds[side], placeAt(shown.End))
		if args.backward {
			p.info.StartCursor = &goOn
		} else {
			p.info.EndCursor = &goOn
		}
	}
}

// ofEdges takes the users at the other ends of edges.
func (p *page) ofEdges(side storage.Side, edges []storage.Edge) {
	p.users, p.since = make([]storage.UserID, len(edges)), make([]time.Time, len(edges))
	for i, e := range edges {
		p.users[i], p.since[i] = side.Peer(e.Pair()), e.UpdateTime.Time()
	}
}

func (userFields) Followings(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.ListFilter, _ model.ListOrder) (*model.FollowConnection, error) {
	return showPage(ctx, userName(obj.UserID), follows)
}

func (userFields) Followers(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.ListFilter, _ model.ListOrder) (*model.FollowConnection, error) {
	return showPage(ctx, userName(obj.UserID), follows)
}
