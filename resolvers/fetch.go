package resolvers

import (
	"context"
	"slices"

	"kith/accounts/identity"
	"kith/graph/fields"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// wanted is a group of users or of relationships on one level of a query, with the
// selections on them.
type wanted struct {
	users []storage.UserID
	exist bool // read the users' rows even when no field of them is selected

	pairs    []storage.Pair
	requests []storage.Pair // by their users

	posts    []storage.Post // that have been read, and may be seen
	postIDs  []storage.PostID
	comments []storage.CommentID

	lists   []storage.UserList // that have been read, and may be seen
	listIDs []storage.ListID

	on []*selections.Object
}

// needsOf is what selections on the same objects need.
func needsOf(ctx context.Context, on []*selections.Object) (needs fields.Needs) {
	_, signedIn := identity.Of(ctx)
	for _, o := range on {
		needs |= o.Needs(signedIn)
	}
	return needs
}

// fetch reads all that a level and the levels below it need into the request's loaders: on each
// level one batch for each look-up, all of them at once, and then what the level's set answers
// need.
func fetch(ctx context.Context, level ...wanted) {
	stateOf(ctx).planOf(ctx)
	for len(level) > 0 {
		b := batchOf(ctx, level)
		level = b.run(ctx)
	}
}

// batch is what one level asks of each loader.
type batch struct {
	rows   []storage.UserID
	counts []storage.UserID
	edges  [len(storage.AllSides)][]storage.Pair
	marks  []storage.Pair
	mutes  []storage.Pair // of both kinds

	lists    []listed      // plain lists
	opens    []social.List // lists whose visibility matters
	pools    []storage.PageQuery
	requests []requested
	nodes    []wanted // posts, comments and lists by their ids
	places   []placePages

	sets []answerName // by each alias
	next []wanted
}

// placePages is a [placeReads].
type placePages interface {
	ask(*access) loaders.Question
	show(context.Context, *batch, *social.Audience)
}

// listed is a plain list of some users, with the same page and selection.
type listed struct {
	*selections.Field
	page   pageArguments
	owners []storage.UserID
}

// requested is friend requests in one table that share a selection.
type requested struct {
	side  storage.Side
	pairs []storage.Pair
	on    []*selections.Object
}

func batchOf(ctx context.Context, level []wanted) batch {
	var b batch
	for _, w := range level {
		if len(w.users) > 0 {
			b.addUsers(ctx, w)
		}
		if len(w.pairs) > 0 {
			b.addRelationships(ctx, w.pairs, w.on)
		}
		if len(w.requests) > 0 {
			for _, side := range requestSides {
				if visible := accessOf(ctx).requestsOn(side, w.requests); len(visible) > 0 {
					b.addRequests(side, visible, w.on)
				}
			}
		}
		if len(w.posts) > 0 {
			b.addPosts(ctx, w.posts, w.on)
		}
		if len(w.lists) > 0 {
			b.addLists(ctx, w.lists, w.on)
		}
		if len(w.postIDs)+len(w.comments)+len(w.listIDs) > 0 {
			b.nodes = append(b.nodes, w)
			b.addOpens(storage.FavoriteInbox, storage.Each(w.postIDs, func(id storage.PostID) storage.UserID { return id.Author }))
			b.addOpens(storage.FavoriteInbox, storage.Each(w.comments, func(id storage.CommentID) storage.UserID { return id.Author }))
		}
	}
	return b
}

func (b *batch) addUsers(ctx context.Context, w wanted) {
	needs := needsOf(ctx, w.on)
	if needs&fields.Row != 0 || w.exist {
		b.rows = joined(b.rows, w.users)
	}
	if needs&fields.Counts != 0 {
		b.counts = joined(b.counts, w.users)
	}
	for side, open := range [...]fields.Needs{storage.Forward: fields.OpenFollowings, storage.Inverse: fields.OpenFollowers} {
		if needs&open != 0 {
			b.addOpens(storage.Side(side), w.users)
		}
	}
	for _, on := range w.on {
		for _, f := range on.Fields {
			b.addField(ctx, w.users, f)
		}
	}
}

func (b *batch) addOpens(side storage.Side, owners []storage.UserID) {
	for _, id := range owners {
		b.opens = append(b.opens, social.List{Side: side, Owner: id})
	}
}

// addField adds what the arguments of a field of users, and the selection below it, need.
// Wrong arguments are left to the field's own resolver, which refuses them.
func (b *batch) addField(ctx context.Context, users []storage.UserID, f *selections.Field) {
	request := stateOf(ctx)
	if f.Ahead.IsSet() {
		b.addSets(f, users)
	}
	switch f.Ahead {
	case fields.List:
		args, err := argument[setArguments](request, f)
		if err != nil {
			return
		}
		b.addOpens(f.Side, users)
		if args.selected != nil {
			b.addSets(f, users)
			if args.selected.mutual != nil {
				b.addOpens(f.Side.Other(), users)
			}
			return
		}
		if pageNeedsOf(f).total {
			b.counts = joined(b.counts, users)
		}
		b.lists = append(b.lists, listed{f, args.pageArguments, users})
	case fields.Posts:
		b.addOpens(storage.FavoriteInbox, users)
		userPosts.add(b, request, f, byUser(users))
	case fields.Favorites:
		b.addOpens(storage.FavoriteInbox, users)
		userFavorites.add(b, request, f, byUser(users))
	case fields.Lists:
		listsOfUser.add(b, request, f, byUser(users))
	case fields.Related:
		b.addOpens(storage.FavoriteInbox, users)
	case fields.Common:
		if args, err := argument[setArguments](request, f); err == nil {
			b.addOpens(f.Side, []storage.UserID{args.other})
			b.counts = append(b.counts, args.other)
		}
	case fields.Known:
		if viewer, ok := identity.Of(ctx); ok {
			b.counts = append(b.counts, viewer.ID)
		}
	case fields.Suggestions:
		args, err := argument[setArguments](request, f)
		if err == nil && args.best {
			b.addOpens(storage.Inverse, users)
		}
		if err == nil && args.text == "" {
			for _, id := range users {
				b.pools = append(b.pools, social.PoolAhead(id))
			}
		}
	case fields.Towards:
		if other, err := argument[storage.UserID](request, f); err == nil {
			b.addRelationships(ctx, storage.Each(users, func(id storage.UserID) storage.Pair { return storage.Pair{From: id, To: other} }), f.Below)
		}
	case fields.FromViewer:
		if viewer, ok := identity.Of(ctx); ok {
			b.addRelationships(ctx, storage.Each(users, func(id storage.UserID) storage.Pair { return storage.Pair{From: viewer.ID, To: id} }), f.Below)
		}
	}
}

func (b *batch) addSets(f *selections.Field, users []storage.UserID) {
	for _, id := range users {
		b.sets = append(b.sets, answerName{f, storage.PostID{Author: id}})
	}
}

// byUser names users as owners of lists.
func byUser(users []storage.UserID) []storage.PostID {
	return storage.Each(users, func(id storage.UserID) storage.PostID { return storage.PostID{Author: id} })
}

// joined appends a list. It takes the first list as it is, without capacity beyond its length,
// because its maker may keep it.
func joined[T any](to, more []T) []T {
	if to == nil {
		return slices.Clip(more)
	}
	return append(to, more...)
}

func (b *batch) addRelationships(ctx context.Context, pairs []storage.Pair, on []*selections.Object) {
	needs := needsOf(ctx, on)
	for side, edge := range edgeNeeds {
		if needs&edge != 0 {
			b.edges[side] = joined(b.edges[side], seenFrom(storage.Side(side), pairs))
		}
	}
	var own []storage.Pair
	var shown idSet // users whose lists decide whether the viewer sees a relationship with another user
	e := accessOf(ctx)
	for _, p := range pairs {
		switch {
		case e.isViewers(p):
			own = append(own, p)
		case e.isBetweenOthers(p):
			shown.Add(p.From, struct{}{})
		}
	}
	for _, id := range shown.Keys() {
		b.opens = append(b.opens, bothLists(id)...)
	}
	if needs&fields.Mark != 0 {
		b.marks = append(b.marks, own...)
	}
	if needs&fields.Mute != 0 {
		for _, k := range muteKinds {
			b.mutes = append(b.mutes, storage.Each(own, func(p storage.Pair) storage.Pair { return k.Pair(p.From, p.To) })...)
		}
	}
	for _, f := range fieldsOn(on) {
		switch {
		case f.Ahead == fields.End:
			b.next = append(b.next, wanted{users: endsOf(pairs, f.Side), exist: true, on: f.Below})
		case f.Ahead == fields.Request && len(own) > 0:
			b.addRequests(f.Side, seenFrom(f.Side, own), f.Below)
		}
	}
}

// addRequests adds requests that are read on one side.
func (b *batch) addRequests(side storage.Side, pairs []storage.Pair, on []*selections.Object) {
	b.edges[side] = append(b.edges[side], pairs...)
	b.requests = append(b.requests, requested{side, pairs, on})
}

// edgeNeeds are the needs of each half of a relationship.
var edgeNeeds = [...]fields.Needs{storage.Forward: fields.Edge, storage.Inverse: fields.Back}

// fieldsOn are the fields of selections on the same objects.
func fieldsOn(on []*selections.Object) []*selections.Field {
	if len(on) == 1 {
		return on[0].Fields
	}
	var all []*selections.Field
	for _, o := range on {
		all = append(all, o.Fields...)
	}
	return all
}

// aheadOn are the fields that are read ahead as one kind, on one side.
func aheadOn(selected []*selections.Field, kind fields.Ahead, side storage.Side) (some []*selections.Field) {
	for _, f := range selected {
		if f.Ahead == kind && f.Side == side {
			some = append(some, f)
		}
	}
	return some
}

// belowOf joins the selections below some fields.
func belowOf(some []*selections.Field) (on []*selections.Object) {
	for _, f := range some {
		on = append(on, f.Below...)
	}
	return on
}

var sides = [...]storage.Side{storage.Forward, storage.Inverse}

// seenFrom turns pairs for a side so that both halves of a relationship are read
// on the shard of its first user: from → to is in its `following`, to → from in
// its `follower`. A user's relation to itself has nothing to read.
func seenFrom(side storage.Side, pairs []storage.Pair) []storage.Pair {
	turned := make([]storage.Pair, 0, len(pairs))
	for _, p := range pairs {
		if p.From != p.To {
			turned = append(turned, side.Pair(p.From, p.To))
		}
	}
	return turned
}

// endsOf lists one end of every pair, each once.
func endsOf(pairs []storage.Pair, side storage.Side) []storage.UserID {
	var ends idSet
	for _, p := range pairs {
		ends.Add(side.Owner(p), struct{}{})
	}
	return ends.Keys()
}

// run reads everything at once, then whatever turns out to be needed, and returns the next level.
func (b *batch) run(ctx context.Context) []wanted {
	e := accessOf(ctx)
	l, known := e.loaders, e.request.knownAudience()
	lists := b.pagesAhead(known)

	rows := joined(b.rows, ownersOf(e.viewer, b.opens))
	users, counts := l.Users.Ask(rows), l.Counts.Ask(b.counts)
	asked := make([]loaders.Question, 0, 8)
	asked = append(asked, users, counts)
	if len(b.marks) > 0 {
		asked = append(asked, l.Marks().Ask(b.marks))
	}
	if len(b.mutes) > 0 {
		b.edges[storage.Relations] = b.mutes
		asked = append(asked, l.Details().Ask(b.mutes))
	}
	var edges [len(storage.AllSides)]*loaders.Asked[storage.Pair, storage.Edge]
	for _, side := range storage.AllSides {
		if len(b.edges[side]) > 0 {
			edges[side] = l.Edges(side).Ask(b.edges[side])
			asked = append(asked, edges[side])
		}
	}
	for _, p := range lists {
		if p != nil && len(p.ahead) > 0 {
			p.pages = l.Pages(p.side).Ask(p.ahead)
			asked = append(asked, p.pages)
		}
	}
	if len(b.pools) > 0 {
		asked = append(asked, l.Pages(storage.Forward).Ask(b.pools))
	}
	if b.readsPosts() {
		asked = append(asked, b.askNodes(l)...)
		for _, p := range b.places {
			asked = append(asked, p.ask(e))
		}
	}
	if e.viewer != 0 && known == nil && b.looksAtLists() {
		asked = append(asked, l.Blocks().Ask([]storage.UserID{e.viewer}))
	}
	l.Dispatch(asked...)

	users.Wait()
	counts.Wait()
	for _, asked := range edges {
		if asked != nil {
			asked.Wait()
		}
	}
	if b.looksAtLists() {
		b.filterVisible(ctx, lists)
	}
	b.showRequests(ctx)
	if len(b.sets) > 0 {
		b.answerSets(ctx)
	}
	return b.next
}

// looksAtLists reports whether anything in the batch depends on the viewer.
func (b *batch) looksAtLists() bool {
	return len(b.lists) > 0 || len(b.opens) > 0 || len(b.sets) > 0 || b.readsPosts()
}

func (b *batch) readsPosts() bool { return len(b.nodes)+len(b.places) > 0 }

// filterVisible finds out which parts of the lists are visible, and reads more if that is needed.
func (b *batch) filterVisible(ctx context.Context, lists [len(sides)]*pagesOfSide) {
	a, err := audienceOf(ctx)
	if err != nil {
		return // reported by each field that needs it
	}
	accessOf(ctx).fetchOpen(a, b.opens)
	if b.readsPosts() {
		b.showPosts(ctx, a)
	}
	for _, p := range lists {
		if p != nil {
			p.show(ctx, a)
		}
	}
	request := stateOf(ctx)
	for _, list := range b.lists {
		items := list.Below[0].Items
		if items == nil {
			continue
		}
		var ids []storage.UserID
		for _, owner := range list.owners {
			answer, ok := lookUp(request, &request.answers, nameOf(list.Field, owner))
			if !ok {
				continue
			}
			shown := answer.(storage.Result[social.Shown])
			ids = slices.Grow(ids, len(shown.Value.Edges))
			for _, e := range shown.Value.Edges {
				ids = append(ids, list.Side.Peer(e.Pair()))
			}
		}
		if len(ids) > 0 {
			b.next = append(b.next, wanted{users: ids, on: items})
		}
	}
}

// showRequests has the users of requests read, and fetches the messages of pending requests.
func (b *batch) showRequests(ctx context.Context) {
	l := loaders.For(ctx)
	var messages []storage.Pair
	for _, wanted := range b.requests {
		var rows []storage.Edge
		for _, p := range wanted.pairs {
			if r := l.Edges(wanted.side).Load(p); r.Found && r.Value.Type != storage.None {
				rows = append(rows, r.Value)
			}
		}
		b.next = append(b.next, wantedByRequests(rows, wanted.on)...)
		if aheadOn(fieldsOn(wanted.on), fields.Message, storage.Forward) != nil {
			for _, row := range rows {
				if row.Type == storage.Pending {
					messages = append(messages, row.Pair())
				}
			}
		}
	}
	if len(messages) > 0 {
		l.Messages().Fetch(messages)
	}
}
