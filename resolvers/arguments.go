package resolvers

import (
	"context"
	"strings"

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
	filtered, special bool // only the viewer's follows that are special, or only the others: a separate answer
}

// parse reads the arguments of a field before it is resolved.
func parse(ctx context.Context, f *selections.Field) any {
	switch f.Ahead {
	case fields.UserIDs:
		return parsedAs(parseUserIDs(texts(ctx, f, "id", "ids"), limits.MaxIDs))
	case fields.Handles:
		return parsedAs(parseHandles(texts(ctx, f, "handle", "handles")))
	case fields.NodeIDs:
		ids := texts(ctx, f, "id", "ids")
		if err := checkLength("ids", len(ids), limits.MaxIDs); err != nil {
			return parsedAs(given[nodeID]{}, err)
		}
		return parsedAs(parseEach(ids, parseNodeID), nil)
	case fields.Entities:
		return parsedAs(parseEntities(f.Argument(ctx, "representations")))
	case fields.Relationships:
		return parsedAs(pairsOf(texts(ctx, f, "from"), texts(ctx, f, "to")))
	case fields.List:
		filter, _ := f.Argument(ctx, "filter").(map[string]any)
		page, err := pageOf(ctx, f)
		args := listArguments{pageArguments: page}
		args.special, args.filtered = filter["special"].(bool)
		return parsedAs(args, err)
	case fields.Posts:
		return parsedAs(placePageOf(ctx, cursor.Posts, f.Argument(ctx, "first"), f.Argument(ctx, "after")))
	case fields.Comments:
		return parsedAs(placePageOf(ctx, cursor.Comments, f.Argument(ctx, "first"), f.Argument(ctx, "after")))
	case fields.Favorites:
		return parsedAs(placePageOf(ctx, cursor.Favorites, f.Argument(ctx, "first"), f.Argument(ctx, "after")))
	case fields.FavoritedBy:
		return parsedAs(placePageOf(ctx, cursor.FavoritedBy, f.Argument(ctx, "first"), f.Argument(ctx, "after")))
	case fields.Towards:
		return parsedAs(parseUserID(strings.Join(texts(ctx, f, "to"), "")))
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

// texts reads arguments that are texts, or lists of them.
func texts(ctx context.Context, f *selections.Field, names ...string) (all []string) {
	for _, name := range names {
		switch v := f.Argument(ctx, name).(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, one := range v {
				text, _ := one.(string)
				all = append(all, text)
			}
		}
	}
	return all
}
