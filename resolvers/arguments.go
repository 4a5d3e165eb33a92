package resolvers

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/limits"
	"kith/graph/selections"
)

// planned is the running field as the request's plan has it.
func planned(ctx context.Context) *selections.Field {
	return stateOf(ctx).planOf(ctx).At(graphql.GetFieldContext(ctx))
}

// planOf is the plan of the request. The first call parses its arguments.
func (r *requestState) planOf(ctx context.Context) *selections.Plan {
	r.once.Do(func() {
		r.plan = selections.Of(ctx)
		r.arguments = make([]any, len(r.plan.Asked))
		for i, f := range r.plan.Asked {
			r.arguments[i] = parse(ctx, f)
		}
	})
	return r.plan
}

// parsed is the arguments of a field, or the error in them.
type parsed[T any] struct {
	value T
	err   error
}

func parsedAs[T any](value T, err error) any { return &parsed[T]{value, err} }

// argument is the arguments of a planned field, as [parse] has read them. An error in them is
// reported when the field is resolved.
func argument[T any](r *requestState, f *selections.Field) (T, error) {
	p := r.arguments[f.Index].(*parsed[T])
	return p.value, p.err
}

// listArguments are those of `followings` and `followers`.
type listArguments struct {
	pageArguments
	special bool // only the viewer's special follows: a separate answer
}

// parse reads the arguments of a field before it is resolved.
func parse(ctx context.Context, f *selections.Field) any {
	switch f.Ahead {
	case fields.UserIDs:
		return parsedAs(parseUserIDs(append(texts(f.Argument(ctx, "id")), texts(f.Argument(ctx, "ids"))...), limits.MaxIDs))
	case fields.Handles:
		return parsedAs(parseHandles(append(texts(f.Argument(ctx, "handle")), texts(f.Argument(ctx, "handles"))...)))
	case fields.NodeIDs:
		ids := append(texts(f.Argument(ctx, "id")), texts(f.Argument(ctx, "ids"))...)
		if err := checkLength("ids", len(ids), limits.MaxIDs); err != nil {
			return parsedAs(given[nodeID]{}, err)
		}
		return parsedAs(parseEach(ids, parseNodeID), nil)
	case fields.Entities:
		return parsedAs(parseEntities(f.Argument(ctx, "representations")))
	case fields.Relationships:
		return parsedAs(pairsOf(texts(f.Argument(ctx, "from")), texts(f.Argument(ctx, "to"))))
	case fields.List:
		filter, _ := f.Argument(ctx, "filter").(map[string]any)
		special, _ := filter["special"].(bool)
		page, err := pageOf(ctx, f)
		return parsedAs(listArguments{page, special}, err)
	case fields.Posts:
		return parsedAs(placePageOf(ctx, cursor.Posts, f.Argument(ctx, "first"), f.Argument(ctx, "after")))
	case fields.Comments:
		return parsedAs(placePageOf(ctx, cursor.Comments, f.Argument(ctx, "first"), f.Argument(ctx, "after")))
	case fields.Favorites:
		return parsedAs(placePageOf(ctx, cursor.Favorites, f.Argument(ctx, "first"), f.Argument(ctx, "after")))
	case fields.FavoritedBy:
		return parsedAs(placePageOf(ctx, cursor.FavoritedBy, f.Argument(ctx, "first"), f.Argument(ctx, "after")))
	case fields.Towards:
		return parsedAs(parseUserID(idOf(f.Argument(ctx, "to"))))
	case fields.BothLists, fields.Common, fields.Known, fields.Suggestions:
		return parsedAs(parseSet(ctx, f))
	case fields.Via:
		size, given, err := sizeOf("first", f.Argument(ctx, "first"))
		if !given {
			size = defaultVia
		}
		return parsedAs(size, err)
	}
	return nil
}

// idOf reads an argument of type ID.
func idOf(argument any) string {
	text, _ := graphql.UnmarshalID(argument)
	return text
}

// texts reads an argument of type ID or of a list of them.
func texts(argument any) []string {
	switch v := argument.(type) {
	case nil:
		return nil
	case []string:
		return v
	case []any:
		list := make([]string, len(v))
		for i := range v {
			list[i], _ = graphql.UnmarshalID(v[i])
		}
		return list
	}
	return []string{idOf(argument)}
}
