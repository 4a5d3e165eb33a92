package resolvers

import (
	"cmp"
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

func (r queries) People(ctx context.Context, where model.PeopleFilter, _ *int32, _ *string, _ *int32, _ *string) (*model.UserConnection, error) {
	f := fetchQuery(ctx)
	graph, err := r.graph(ctx, loaders.For(ctx).Reader())
	if err != nil {
		return nil, err
	}
	filter, err := r.filterOf(where, 1)
	if err == nil {
		err = filter.Check()
	}
	if err != nil {
		return nil, filterError(err)
	}
	args, err := pageOf(ctx, f, 0)
	if err != nil {
		return nil, err
	}
	cursors := bound{kind: cursor.People, to: []int64{hashOf(filter.String())}, what: "filter"}
	if open, err := readOpen(ctx, filter.Lists()); err != nil || slices.Contains(open, false) {
		return nil, err
	}
	if seen, err := r.readMade(ctx, graph, filter.Made()); err != nil || !seen {
		return nil, err
	}
	absent := func(l social.List) bool { return isAbsent(ctx, l.Owner) }
	p, err := r.byID(ctx, args, cursors, func(from social.Mark, first int) (social.Common, error) {
		return graph.People(ctx, social.PeopleQuery{Filter: filter, Empty: absent, From: from, First: first})
	})
	if err != nil {
		return nil, err
	}
	return readPage(ctx, f, p, plain), nil
}

// readMade reads who is on lists that users have made, and to whom edges of declared kinds lead; false if the viewer does not see one of them.
func (r *Resolver) readMade(ctx context.Context, g *social.Graph, made []*social.Members) (seen bool, err error) {
	ids := storage.Each(made, func(m *social.Members) storage.ListID { return m.List })
	for _, list := range seenLists(ctx, slices.DeleteFunc(slices.Clone(ids), func(id storage.ListID) bool { return id.Number <= 0 })) {
		if list.Err != nil || !list.Found {
			return false, list.Err
		}
	}
	for _, kind := range r.Declared.Kinds() {
		for _, id := range ids {
			if id.Kind().Number != kind.Number {
				continue
			}
			if sees, err := r.seesEdges(ctx, kind, id.Owner); err != nil || !sees {
				return false, err
			}
			n := loaders.Of(loaders.For(ctx), storage.KindLookups).Get(storage.OwnerKind{Owner: id.Owner, Kind: kind.Number})
			if n.Err != nil || n.Value.Outgoing > storage.MaxMembers {
				return false, cmp.Or(n.Err, error(apierr.OutOfRange.Error("user %s has more than %d edges of this kind", id.Owner, storage.MaxMembers).In("where")))
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
	if _, ok := apierr.Of(err); ok {
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
		id, _ := storage.ListOf(owner, kind.Number)
		f.Members = &social.Members{List: id}
	}
	return f, nil
}
