package resolvers

import (
	"context"
	"hash/fnv"
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
	filter, err := filterOf(where, 1)
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
	absent := func(l social.List) bool { return isAbsent(ctx, l.Owner) }
	a, err := r.byID(ctx, args, cursors, func(from social.Mark, first int) (social.Common, error) {
		return graph.People(ctx, social.PeopleQuery{Filter: filter, Empty: absent, From: from, First: first})
	})
	if err != nil {
		return nil, err
	}
	a.page.fetch(ctx, f)
	return plain(a.show(ctx, f)), nil
}

func filterError(err error) error {
	if _, ok := apierr.Of(err); ok {
		return err
	}
	return apierr.InvalidValue.Error("%s", err).In("where")
}

// filterOf turns a filter into the form of the rules. It has one field, which is not null.
func filterOf(where model.PeopleFilter, level int) (social.Filter, error) {
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
			inner, err := filterOf(*one, level+1)
			if err != nil {
				return f, err
			}
			*part.into = append(*part.into, inner)
		}
	}
	if not, _ := where.Not.ValueOK(); not != nil {
		inner, err := filterOf(*not, level+1)
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
	return f, nil
}

// hashOf binds cursors to a text, such as that of a filter: a positive number.
func hashOf(text string) int64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return int64(h.Sum64() >> 1)
}
