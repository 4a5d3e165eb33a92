package resolvers

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/graph/why"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

func (r queries) People(ctx context.Context, where model.PeopleFilter, _ *int32, _ *string, _ *int32, _ *string) (*model.UserConnection, error) {
	f := fetchQuery(ctx)
	graph, err := graphOf(ctx)
	if err != nil {
		return nil, err
	}
	filter, err := r.filterOf(where, 1)
	if err == nil {
		err = filter.Check()
	}
	cursors := prefetch.Cursors{Kind: cursor.People, To: []int64{prefetch.Hash(filter.String())}, What: "filter"}
	args, badPage := prefetch.ParsePart(ctx, f, cursors.If(err))
	if err := apierr.All(filterError(err), badPage); err != nil {
		return nil, err
	}
	if open, err := prefetch.ReadOpen(ctx, filter.Lists()); err != nil || slices.Contains(open, false) {
		return nil, err
	}
	if seen, err := r.readMade(ctx, graph, filter.Made()); err != nil || !seen {
		return nil, err
	}
	absent := func(l social.List) bool { return prefetch.IsAbsent(ctx, l.Owner) }
	p, err := byID(ctx, args, cursors, func(from social.Mark, first int) (social.Common, error) {
		return graph.People(ctx, social.PeopleQuery{Filter: filter, Empty: absent, From: from, First: first})
	})
	if err != nil {
		return nil, err
	}
	return readPage(ctx, f, &p), nil
}

// readMade reads who is on lists that users have made, and to whom edges of declared kinds lead; false if the viewer does not see one of them.
func (r *Resolver) readMade(ctx context.Context, g *social.Graph, made []*social.Members) (seen bool, err error) {
	ids := storage.Each(made, func(m *social.Members) storage.ListID { return m.List })
	for _, list := range seenLists(ctx, storage.Filter(ids, func(id storage.ListID) bool { return id.Number > 0 })) {
		if list.Err != nil || !list.Found {
			return false, list.Err
		}
	}
	for _, kind := range r.Declared.Kinds() {
		for _, id := range ids {
			if id.Kind() != kind.Number {
				continue
			}
			if sees, err := r.seesEdges(ctx, kind, id.Owner); err != nil || !sees {
				return false, err
			}
			n := loaders.Of(loaders.For(ctx), storage.KindLookups).Get(storage.OwnerKind{Owner: id.Owner, Kind: kind.Number})
			if n.Err != nil || n.Value.Outgoing > declared.MaxMembers {
				return false, cmp.Or(n.Err, error(apierr.OutOfRange.Error("user %s has more than %d edges of this kind", id.Owner, declared.MaxMembers).In("where")))
			}
		}
	}
	sets, err := g.OnLists(ctx, ids)
	if err != nil {
		return false, err
	}
	for i, m := range made {
		m.Set = sets[i]
	}
	return true, nil
}

func filterError(err error) error {
	if _, ok := apierr.Of(err); ok || err == nil {
		return err
	}
	return apierr.InvalidValue.Error("%s", err).In("where")
}

// filterOf turns a filter into the form of the rules. It has one field, which is not null.
func (r *Resolver) filterOf(where model.PeopleFilter, level int) (social.Filter, error) {
	var f social.Filter
	if level > social.MaxFilterLevels {
		return f, social.ErrFilterLevels
	}
	for _, part := range []struct {
		field graphql.Omittable[[]*model.PeopleFilter]
		into  *[]social.Filter
	}{{where.And, &f.All}, {where.Or, &f.Any}} {
		filters, _ := part.field.ValueOK()
		if filters == nil {
			continue
		}
		*part.into = []social.Filter{}
		for _, one := range filters {
			inner, err := r.filterOf(*one, level+1)
			if err != nil {
				return f, err
			}
			*part.into = append(*part.into, inner)
		}
	}
	if not, _ := where.Not.ValueOK(); not != nil {
		inner, err := r.filterOf(*not, level+1)
		if err != nil {
			return f, err
		}
		f.Not = &inner
	}
	for _, leaf := range []struct {
		field graphql.Omittable[*string]
		sides []storage.Side
	}{
		{where.FollowersOf, []storage.Side{storage.Inverse}},
		{where.FollowedBy, []storage.Side{storage.Forward}},
		{where.FriendsOf, []storage.Side{storage.Forward, storage.Inverse}},
	} {
		text, _ := leaf.field.ValueOK()
		if text == nil {
			continue
		}
		owner, err := parseUserID("where", *text)
		if err != nil {
			return f, err
		}
		for _, side := range leaf.sides {
			f.On = append(f.On, social.List{Side: side, Owner: owner})
		}
	}
	if text, _ := where.List.ValueOK(); text != nil {
		id, err := parseListID("where", *text)
		if err != nil {
			return f, err
		}
		f.Members = &social.Members{List: id}
	}
	if to, _ := where.RelatedTo.ValueOK(); to != nil {
		kind, err := r.kindOf(to.Kind)
		if err == nil && kind.To != "" {
			err = apierr.InvalidValue.Error("edges of this kind do not lead to users").In("where")
		}
		if err != nil {
			return f, err
		}
		owner, err := parseUserID("where", to.UserID)
		if err != nil {
			return f, err
		}
		id, _ := storage.OwnerKind{Owner: owner, Kind: kind.Number}.List()
		f.Members = &social.Members{List: id}
	}
	return f, nil
}

func (r queries) SearchUsers(ctx context.Context, text string, _ *int32, _ *string) (*model.UserConnection, error) {
	f := fetchQuery(ctx)
	words, badText := wordsOf("text", text)
	cursors := prefetch.Cursors{Kind: cursor.RankedSearch, To: []int64{prefetch.Hash(strings.Join(words, " "))}, What: "search"}
	args, badPage := prefetch.ParsePart(ctx, f, cursors.If(badText))
	if err := apierr.All(badPage, badText); err != nil {
		return nil, err
	}
	var near, followers, id int64
	if err := cursors.Read(ctx, "after", args.Text, &near, &followers, &id); err != nil {
		return nil, err
	}
	found, err := prefetch.Shared(ctx, searchKey(strings.Join(words, " ")), func() (listed[social.Found], error) { return r.search(ctx, words) })
	if err != nil {
		return nil, err
	}
	after := social.Found{Near: near, Followers: followers, User: storage.UserID(id)}
	all, _, more := prefetch.Cut(args, found.all, func(one social.Found) bool { return one.Compare(after) > 0 }, nil)
	p := &userPage{Complete: found.complete}
	for _, one := range all {
		p.Rows = append(p.Rows, one.User)
		p.Cursors = append(p.Cursors, cursors.Spell(prefetch.Unsealed, one.Near, one.Followers, int64(one.User)))
	}
	p.Info = prefetch.PageInfo(r.Cursors, p.Cursors, more, nil)
	return readPage(ctx, f, p), nil
}

// searchKey is the words of a search, whose pages share what was found.
type searchKey string

func (r *Resolver) search(ctx context.Context, words []string) (found listed[social.Found], err error) {
	if words == nil { // nobody has typed enough
		return listed[social.Found]{complete: true}, nil
	}
	graph, err := graphOf(ctx)
	if err != nil {
		return found, err
	}
	found.all, found.complete, err = graph.Search(ctx, social.SearchQuery{Words: words, Popular: r.Popular.Users})
	return found, err
}

// mostAmong is how many edges one answer of `edgesAmong` has at most: some 500 kB.
const mostAmong = 100_000

func (r queries) EdgesAmong(ctx context.Context, texts []string) (*model.EdgesAmong, error) {
	return prefetch.Shared(ctx, fetchQuery(ctx).Same, func() (*model.EdgesAmong, error) { return r.edgesAmong(ctx, texts) })
}

func (r queries) edgesAmong(ctx context.Context, texts []string) (*model.EdgesAmong, error) {
	if err := checkLength("ids", len(texts), limits.MaxAmong); err != nil {
		return nil, err
	}
	var ids prefetch.IDSet
	places := make([]int, 0, len(texts)) // of the distinct ids, in the answer
	for i, text := range texts {
		id, err := parseUserID("ids", text)
		if err != nil {
			return nil, err
		}
		if ids.Add(id, struct{}{}) {
			places = append(places, i)
		}
	}
	graph, err := graphOf(ctx)
	if err != nil {
		return nil, err
	}
	var lists []social.List // two of each user
	for _, id := range ids.Keys() {
		lists = append(lists, bothLists(id)...)
	}
	open, err := prefetch.ReadOpen(ctx, lists)
	if err != nil {
		return nil, err
	}
	visible := func(from, to int) bool {
		return open[2*from+int(storage.Forward)] || open[2*to+int(storage.Inverse)]
	}
	found, err := graph.EdgesAmong(ctx, ids.Keys(), mostAmong, visible)
	if err != nil {
		return nil, err
	}
	if !found.Complete {
		prefetch.AccessOf(ctx).Notice(why.Budget, 0)
	}
	answer := &model.EdgesAmong{Followings: make([][]int32, len(texts)), Complete: found.Complete}
	for i := range answer.Followings {
		answer.Followings[i] = []int32{}
	}
	for from, followings := range found.Followings {
		answer.Followings[places[from]] = storage.Each(followings, func(to int) int32 { return int32(places[to]) })
	}
	return answer, nil
}
