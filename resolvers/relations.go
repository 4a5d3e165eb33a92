package resolvers

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/graph/why"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// The kinds that a product declares in the file of --relations are served by generic fields: validation knows their names.

// maxRelated is how many edges one call makes or ends: a consistency token names each.
const maxRelated = 100

// kindOf is a declared kind, by its value in the schema.
func (r *Resolver) kindOf(value string) (declared.Kind, error) {
	kind, declared := r.Declared.Kinds()[value]
	if !declared {
		return kind, apierr.InvalidValue.Error("no kind %q is declared", abridged(value)).In("kind")
	}
	return kind, nil
}

// parseEnd parses the id of what an edge of a kind leads to.
func parseEnd(argument string, kind declared.Kind, text string) (storage.UserID, error) {
	id, err := parseUserID(argument, text)
	return kind.End(int64(id)), err
}

// edgesFrom are the edges of a kind that leave a user.
func edgesFrom(kind int64, user storage.UserID) ownList {
	return ownList{side: storage.Relations, owner: user, item: kind, kind: storage.Related}
}

// edgesOfKind are the edges of a declared kind that leave a user.
var edgesOfKind = &setField[storage.UserID]{
	parse: parsePart(cursor.Edges), name: userName,
	ahead: func(_ context.Context, level *prefetch.Level, _ setArguments, users []storage.UserID) {
		level.AddOpens(storage.FavoriteInbox, users)
	},
	setWork: setWork{single: true, answer: func(q setQuestion, ctx context.Context) (userPage, error) {
		value, _ := q.name.Field.Argument(ctx, "kind").(string)
		kind, err := q.resolver.kindOf(value)
		if err == nil && q.Viewer != q.user && !kind.Public {
			q.Notice(why.Closed, q.user)
			return closed, nil
		}
		if err != nil {
			return closed, err
		}
		if sees, err := q.Shows(q.audience, q.user); err != nil || !sees {
			return closed, err
		}
		return related(ctx, q.read, kind, edgesFrom(kind.Number, q.user), q.audience, q.arguments.PageArguments, q.needs())
	}},
}

// needs is what all aliases select of the page; of a number, how long the list is.
func (q setQuestion) needs() fields.Needs {
	if q.name.Field.Below == nil {
		return fields.Total
	}
	return prefetch.PageNeedsOf(q.name.Field.Twins...)
}

func (userFields) Edges(ctx context.Context, obj *model.User, _ string, _ *int32, _ *string) (*model.RelationConnection, error) {
	f, p, err := prefetch.Answer[storage.UserID](ctx, userName(obj.UserID))
	if err != nil || p == nil {
		return nil, err
	}
	return relationsOn(ctx, f, p, storage.Relations)
}

// related is a page of edges of a kind, and reads what is beside them.
func related(ctx context.Context, read loaders.Reader, kind declared.Kind, list ownList, audience *social.Audience, args prefetch.PageArguments, n fields.Needs) (userPage, error) {
	p, err := list.page(ctx, read, audience, args, list.cursorsOf(), n)
	if err != nil {
		return p, err
	}
	made := p.Made.(*edgesRead)
	if made.kind = &kind; kind.To != "" && !list.side.IsInverse() {
		p.Rows = nil
	}
	if n&fields.Details != 0 && len(made.edges) > 0 {
		storage.DetailLookups.Read(ctx, read, storage.Each(made.edges, storage.Edge.Pair)...)
	}
	return p, nil
}

// seesEdges reports whether the viewer may see the edges of a kind that leave a user.
func (r *Resolver) seesEdges(ctx context.Context, kind declared.Kind, from storage.UserID) (bool, error) {
	if !prefetch.IsViewer(ctx, from) && !kind.Public {
		prefetch.AccessOf(ctx).Notice(why.Closed, from)
		return false, nil
	}
	return r.isOpenToRelate(ctx, from)
}

// isOpenToRelate reports whether a user exists, and what it publishes is open to the viewer.
func (r *Resolver) isOpenToRelate(ctx context.Context, user storage.UserID) (bool, error) {
	open, err := prefetch.ReadOpen(ctx, []social.List{social.PostsOf(user)})
	if err != nil || !open[0] || prefetch.IsAbsent(ctx, user) && !prefetch.IsViewer(ctx, user) {
		return false, err
	}
	row := loaders.For(ctx).Users.Get(user)
	return row.Found, row.Err
}

func (r queries) EdgesTo(ctx context.Context, value, text string, _ *int32, _ *string) (*model.RelationConnection, error) {
	f := prefetch.Running(ctx)
	kind, badKind := r.kindOf(value)
	end, badEnd := parseEnd("id", kind, text)
	args, badPage := prefetch.ParsePart(ctx, f, relationCursors(storage.RelationInbox, end, kind.Number).If(cmp.Or(badKind, badEnd)))
	if err := apierr.All(badKind, badEnd, badPage); err != nil {
		return nil, err
	}
	switch {
	case !kind.Public && !(kind.BothEnds && prefetch.IsViewer(ctx, end)):
		prefetch.AccessOf(ctx).Notice(why.Closed, 0)
		return nil, nil
	case kind.To == "":
		if open, err := r.isOpenToRelate(ctx, end); err != nil || !open {
			return nil, err
		}
	}
	audience, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return nil, err
	}
	list := ownList{side: storage.RelationInbox, owner: end, item: kind.Number, kind: storage.Related, checked: !prefetch.IsViewer(ctx, end)}
	p, err := related(ctx, loaders.For(ctx).Reader(), kind, list, audience, args, prefetch.PageNeedsOf(f))
	if err != nil {
		return nil, err
	}
	prefetch.Fetch(ctx, objectsOn(&p, f)...)
	return relationsOn(ctx, f, &p, list.side)
}

// relationsOn is a page of edges whose users have been fetched, as far as they lead to users.
func relationsOn(ctx context.Context, f *selections.Field, p *userPage, side storage.Side) (*model.RelationConnection, error) {
	prefetch.Explain(ctx, p)
	made := p.Made.(*edgesRead)
	nodes := make([]*model.User, len(made.edges))
	if items := f.Below[0].Items; items != nil && len(p.Rows) > 0 {
		nodes = usersOf(ctx, prefetch.Users{IDs: p.Rows, Exist: true, On: items}, prefetch.ItemPaths(ctx, f))
	}
	details := make([]storage.Result[storage.Detail], len(made.edges))
	if prefetch.PageNeedsOf(f)&fields.Details != 0 {
		details = loaders.Of(loaders.For(ctx), storage.DetailLookups).Fetch(storage.Each(made.edges, storage.Edge.Pair))
	}
	c := &model.RelationConnection{}
	c.Complete, c.Total = p.Complete, p.Total
	c.Page = prefetch.PageOf(p.Info, nodes, func(i int) model.RelationEdge {
		return relationEdge(*made.kind, side, made.edges[i], details[i], p.Cursors[i], nodes[i])
	})
	return c, nil
}

func relationEdge(kind declared.Kind, side storage.Side, e storage.Edge, d storage.Result[storage.Detail], cursor string, node *model.User) model.RelationEdge {
	id := int64(side.Peer(e.Pair()))
	if !side.IsInverse() {
		id = kind.EndID(e.To)
	}
	return model.RelationEdge{Cursor: cursor, Node: node, EndID: strconv.FormatInt(id, 10), Since: e.UpdateTime.Time(), Detail: d}
}

// Edge is looked up with those of all that ask at the same time.
func (r viewerFields) Edge(ctx context.Context, obj *model.Viewer, value, text string) (*model.RelationEdge, error) {
	kind, badKind := r.kindOf(value)
	end, badEnd := parseEnd("id", kind, text)
	if err := apierr.All(badKind, badEnd); err != nil {
		return nil, err
	}
	if a, err := prefetch.AudienceOf(ctx); err != nil || a.Hides(end) {
		return nil, err
	}
	pair, l := kind.Pair(obj.User.UserID, end), loaders.For(ctx)
	row := loaders.Of(l, storage.EdgeLookups[storage.Relations]).Get(pair)
	if row.Err != nil || row.Value.Type != storage.Related {
		return nil, row.Err
	}
	return edgesOf(ctx, kind, []storage.Edge{row.Value}, payloadSelection(ctx), func(names ...string) prefetch.Paths { return payloadSelection(ctx).at(ctx, names...) })[0], nil
}

// edgesOf shows edges of a kind that leave the viewer. The node of a hidden user is nil.
func edgesOf(ctx context.Context, kind declared.Kind, rows []storage.Edge, on selection, at pathsOf) []*model.RelationEdge {
	edges, nodes, details := make([]*model.RelationEdge, len(rows)), make([]*model.User, len(rows)), make([]storage.Result[storage.Detail], len(rows))
	a, err := prefetch.AudienceOf(ctx)
	if kind.To == "" && on.has("node") && err == nil {
		shown := slices.DeleteFunc(storage.Indexes(len(rows)), func(i int) bool { return a.Hides(rows[i].To) })
		users := prefetch.Users{IDs: storage.Each(shown, func(i int) storage.UserID { return rows[i].To }), Exist: true, On: on.of("node")}
		prefetch.Fetch(ctx, users)
		for k, node := range usersOf(ctx, users, at("node").Of(shown...)) {
			nodes[shown[k]] = node
		}
	}
	if on.has("until") || on.has("attributes") {
		details = loaders.Of(loaders.For(ctx), storage.DetailLookups).Fetch(storage.Each(rows, storage.Edge.Pair))
	}
	for i, row := range rows {
		if err != nil {
			prefetch.FailAt(ctx, at()(i), err)
			continue
		}
		edge := relationEdge(kind, storage.Relations, row, details[i], listedEdge(storage.Relations, row, nil).Cursor, nodes[i])
		edges[i] = &edge
	}
	return edges
}

func (r mutations) Relate(ctx context.Context, value string, ids []string, until *time.Time, attributes map[string]any) (*model.RelatePayload, error) {
	kind, badKind := r.kindOf(value)
	var detail storage.DetailChange
	var badEnd, badAttributes error
	switch {
	case until == nil || badKind != nil:
	case kind.Timed:
		detail.EndsAt, badEnd = accounts.CheckEnd("until", until, r.Relations.Now())
	default:
		badEnd = apierr.InvalidValue.Error("edges of this kind have no end").In("until")
	}
	detail.Attributes, badAttributes = attributeChange(r.Declared.Attributes.Edge, attributes)
	return r.changeRelations(ctx, kind, ids, func(viewer storage.UserID, ends []storage.UserID) ([]storage.Result[storage.Changed], bool) {
		return r.Relations.Relate(ctx, loaders.For(ctx).Reader(), viewer, kind, ends, detail)
	}, badKind, badEnd, badAttributes)
}

func (r mutations) Unrelate(ctx context.Context, value string, ids []string) (*model.RelatePayload, error) {
	kind, badKind := r.kindOf(value)
	return r.changeRelations(ctx, kind, ids, func(viewer storage.UserID, ends []storage.UserID) ([]storage.Result[storage.Changed], bool) {
		return r.Relations.Unrelate(ctx, viewer, kind, ends)
	}, badKind)
}

func (r mutations) changeRelations(ctx context.Context, kind declared.Kind, ids []string, change func(storage.UserID, []storage.UserID) ([]storage.Result[storage.Changed], bool), bad ...error) (*model.RelatePayload, error) {
	viewer, err := r.actorOf(ctx, len(ids))
	if err == nil {
		err = apierr.All(append(bad, checkLength("ids", len(ids), maxRelated))...)
	}
	if err != nil {
		return nil, err
	}
	list := prefetch.ParseInputs(ids, func(text string) (storage.UserID, error) { return parseEnd("ids", kind, text) })
	outcomes := make([]*model.RelateOutcome, len(ids))
	var token, late consistency.Token
	results, stale := change(viewer, list.Good)
	r.explain(ctx, viewer, list.Good, results)
	for i, result := range results {
		at := list.Index(i)
		outcomes[at] = &model.RelateOutcome{ID: ids[at], Changed: result.Value.Changed, Error: followError("ids", relationError(result.Err))}
		if result.Value.Row.UpdateTime > 0 && !prefetch.IsAbsent(ctx, list.Good[i]) { // also of one that was there already
			mark := markOf(storage.Row{Side: storage.Relations, Edge: result.Value.Row})
			if token = append(token, mark); !result.Value.Inverse {
				late = append(late, mark)
			}
		}
	}
	for _, w := range list.Wrong {
		outcomes[w.Index] = &model.RelateOutcome{ID: ids[w.Index], Error: followError("ids", w.Err)}
	}
	s := payloadSelection(ctx)
	r.await(ctx, done{token: token, late: late, stale: stale}, s.readsInverse())
	prefetch.Fetch(ctx, s.viewerObjects(viewer))
	if selected := s.below("outcomes"); selected.has("edge") {
		var rows []storage.Edge
		var index []int
		for i, made := range madeBy(results) {
			if made != nil && made[0].Edge.Type == storage.Related {
				rows, index = append(rows, made[0].Edge), append(index, i)
			}
		}
		at := func(names ...string) prefetch.Paths {
			return list.At(s.at(ctx, slices.Concat([]string{"outcomes", "edge"}, names)...)).Of(index...)
		}
		for k, edge := range edgesOf(ctx, kind, rows, selected.below("edge"), at) {
			outcomes[list.Index(index[k])].Edge = edge
		}
	}
	return &model.RelatePayload{Viewer: s.showViewer(ctx, viewer), Outcomes: outcomes}, nil
}

// relationError is for edges of declared kinds, and of our own.
var relationError = append(refusals{{storage.ErrLimitReached, apierr.TooManyRelations.Error("you have as many of these as one may")}}, ofAttributes...).tell
