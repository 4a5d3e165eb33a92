package resolvers

import (
	"cmp"
	"context"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// listField is a plain list of a user. If users of it are selected, it has a set answer.
type listField struct {
	*setField[storage.UserID]
	side storage.Side
}

func plainList(side storage.Side) *listField {
	parse := func(ctx context.Context, f *selections.Field) (a setArguments, err error) {
		filter, _ := f.Argument(ctx, "filter").(map[string]any)
		if order, _ := f.Argument(ctx, "orderBy").(string); len(filter) > 0 || order != string(model.ListOrderRecent) {
			if a.choice, err = choiceOf(ctx, f); a.choice != nil {
				a.isPart = true
				page, badPage := prefetch.ParsePart(ctx, f, prefetch.Cursors{Kind: cursor.Selected})
				a.PageArguments = page
				return a, apierr.All(err, badPage)
			}
		}
		a.PageArguments, err = prefetch.ParsePage(ctx, f, listKinds[side])
		return a, err
	}
	ahead := func(_ context.Context, level *prefetch.Level, args setArguments, users []storage.UserID) {
		level.AddOpens(side, users)
		if args.choice.mutual != nil {
			level.AddOpens(side.Other(), users)
		}
	}
	return &listField{setOf(parse, ahead, func(q setQuestion, ctx context.Context) (userPage, error) { return q.selected(ctx, side, false) }), side}
}

// Parse implements [selections.Read].
func (l *listField) Parse(ctx context.Context, f *selections.Field) any {
	return prefetch.Parsed(l.parse(ctx, f))
}

func (l *listField) Ask(ctx context.Context, level *prefetch.Level, f *selections.Field, users []storage.UserID) {
	args, err := prefetch.ArgumentsOf[setArguments](level.Request, f)
	if err != nil || args.choice != nil {
		l.setField.Ask(ctx, level, f, users)
		return
	}
	level.AddOpens(l.side, users)
	n := prefetch.PageNeedsOf(f)
	n |= prefetch.PageNeedsOf(f.Same.Twins...) & (fields.Cursors | fields.Around) // they cost nothing, and pages of one list may replace one another
	p := prefetch.GroupIn(level, func(p *listsOfSide) bool { return p.side == l.side }, func() *listsOfSide { return &listsOfSide{side: l.side} })
	if n&fields.Total != 0 {
		level.Counts = prefetch.Joined(level.Counts, users)
	}
	p.aliases = append(p.aliases, listAlias{f, users})
	for _, id := range users {
		name := prefetch.PageName{Field: f.Same, Of: userName(id)}
		one, known := p.pages.Get(name)
		if !known {
			one = &userPage{Complete: true}
			p.pages.Add(name, one)
		}
		one.Needs |= n
	}
}

// listAlias is a plain list of some users.
type listAlias struct {
	*selections.Field
	owners []storage.UserID
}

// listsOfSide are plain lists of one side on one level.
type listsOfSide struct {
	side    storage.Side
	aliases []listAlias
	pages   loaders.SmallMap[prefetch.PageName, *userPage]
	queries []storage.PageQuery // for those of which rows are selected
	ahead   []storage.PageQuery // what is read first for them
	read    *loaders.Asked[storage.PageQuery, []storage.Edge]
}

// Ask asks for what is read first. If the hidden users are not known yet, pages are completed later.
func (p *listsOfSide) Ask(level *prefetch.Level, known *social.Audience) {
	for _, name := range p.pages.Keys() {
		if one, _ := p.pages.Get(name); one.Needs&fields.Rows != 0 {
			args, _ := prefetch.ArgumentsOf[setArguments](level.Request, name.Field)
			q := storage.PageQuery{Owner: name.Of.Author, Limit: args.Size, After: prefetch.PositionAt(args.After), Before: prefetch.PositionAt(args.Before), Backward: args.Backward}
			p.queries, p.ahead = append(p.queries, q), append(p.ahead, known.Ahead(q))
		}
	}
	if len(p.ahead) > 0 {
		p.read = loaders.Of(level.Loaders, storage.PageLookups[p.side]).Ask(p.ahead)
		level.Ask(p.read)
	}
}

// Show completes the pages that are open to the audience, without hidden users, and the lengths of the lists. The users on them are next.
func (p *listsOfSide) Show(ctx context.Context, level *prefetch.Level, a *social.Audience) {
	graph := level.Graph(level.Loaders.Reader(), a)
	var results, open []storage.Result[[]storage.Edge]
	if p.read != nil {
		results = p.read.Results()
	}
	var names []prefetch.PageName // of the open pages with rows
	queries, ahead := p.queries[:0], p.ahead[:0]
	var owners loaders.SmallMap[storage.UserID, int] // of the open lists that are counted
	k := 0
	for _, name := range p.pages.Keys() {
		one, _ := p.pages.Get(name)
		access, noticing, reasons := level.Noticing(a)
		isOpen, err := access.IsOpen(social.List{Side: p.side, Owner: name.Of.Author})
		isOpen = isOpen && !access.IsAbsent(name.Of.Author) // who may come back before it is shown
		one.Err, one.IsClosed, one.Why = err, !isOpen, reasons
		if one.Needs&fields.Total != 0 && isOpen {
			if owners.Add(name.Of.Author, len(owners.Keys())); reasons != nil { // below, lists are counted together
				social.New(level.Loaders.Reader(), level.Budget, noticing).Sizes(ctx, p.side, []storage.UserID{name.Of.Author})
			}
		}
		if one.Needs&fields.Rows == 0 {
			continue
		}
		if isOpen {
			names, open = append(names, name), append(open, results[k])
			queries, ahead = append(queries, p.queries[k]), append(ahead, p.ahead[k])
			if reasons != nil {
				social.New(level.Loaders.Reader(), level.Budget, noticing).Show(ctx, p.side, p.queries[k:k+1], p.ahead[k:k+1], results[k:k+1])
			}
		}
		k++
	}
	shown := graph.Show(ctx, p.side, queries, ahead, open)
	for i, name := range names {
		one, _ := p.pages.Get(name)
		args, _ := prefetch.ArgumentsOf[setArguments](level.Request, name.Field)
		take(one, level.Cursors, p.side, args.PageArguments, shown[i])
	}
	if ids := owners.Keys(); len(ids) > 0 {
		p.count(graph.Sizes(ctx, p.side, ids), &owners)
	}
	for _, name := range p.pages.Keys() {
		one, _ := p.pages.Get(name)
		level.Request.Join(name, one, func(before any) any { return joined(one, before.(*userPage)) })
	}
	for _, list := range p.aliases {
		items := list.Below[0].Items
		if items == nil {
			continue
		}
		var ids []storage.UserID
		for _, owner := range list.owners {
			one, _ := p.pages.Get(prefetch.PageName{Field: list.Same, Of: userName(owner)})
			ids = prefetch.Joined(ids, one.Rows)
		}
		if len(ids) > 0 {
			level.Next = append(level.Next, prefetch.Users{IDs: ids, On: items})
		}
	}
}

// joined is a page with what another level has read of it, which may be answered at the same time: the rows, or how long the list is.
func joined(one, before *userPage) *userPage {
	both := *one
	if one.Needs&fields.Rows == 0 {
		both.Rows, both.Cursors, both.Since, both.Info, both.Why = before.Rows, before.Cursors, before.Since, before.Info, before.Why
	}
	if one.Needs&fields.Total == 0 {
		both.Total = before.Total
	}
	both.Needs, both.Complete, both.Err = one.Needs|before.Needs, one.Complete && before.Complete, cmp.Or(one.Err, before.Err)
	return &both
}

// count tells pages how long their lists are.
func (p *listsOfSide) count(sizes []storage.Result[social.Size], owners *loaders.SmallMap[storage.UserID, int]) {
	for _, name := range p.pages.Keys() {
		one, _ := p.pages.Get(name)
		if at, counted := owners.Get(name.Of.Author); counted && one.Needs&fields.Total != 0 {
			size := sizes[at]
			one.Total = storage.Result[int64]{Value: size.Value.Total, Err: size.Err}
			one.Complete = one.Complete && (size.Value.Complete || size.Err != nil)
		}
	}
}

// take makes a page of what is shown of a plain list.
func take(p *userPage, sealer *cursor.Sealer, side storage.Side, args prefetch.PageArguments, result storage.Result[social.Page[storage.Edge]]) {
	shown := result.Value
	p.Err, p.Complete = result.Err, shown.End == storage.Place{}
	takeUsers(p, side, shown.Rows)
	if p.Needs&fields.Cursors != 0 {
		p.Cursors = storage.Each(shown.Rows, func(e storage.Edge) string { return cursorOf(side, e) })
	}
	if p.Needs&fields.Around == 0 {
		return
	}
	var ends []string
	if n := len(shown.Rows); n > 0 {
		ends = []string{cursorOf(side, shown.Rows[0]), cursorOf(side, shown.Rows[n-1])}
	}
	p.Info = prefetch.PageInfo(sealer, ends, shown.More, nil)
	args.Around(p.Info, shown.More, args.After != storage.Place{}, args.Before != storage.Place{})
	if !p.Complete {
		goOn := prefetch.Spell(sealer, listKinds[side], shown.End)
		if args.Backward {
			p.Info.StartCursor = &goOn
		} else {
			p.Info.EndCursor = &goOn
		}
	}
}

func (userFields) Followings(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.ListFilter, _ model.ListOrder) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID))
}

func (userFields) Followers(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.ListFilter, _ model.ListOrder) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID))
}
