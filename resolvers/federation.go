package resolvers

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/resolvers/prefetch"
	"kith/storage"
)

// parseEntities reads the representations of `_entities`. Apollo Gateway repeats an entity as often as it is named.
func parseEntities(argument any, prefix selections.Prefix) (prefetch.Inputs[nodeID], error) {
	all, different := prefetch.ParseInputs(graphql.CoerceList(argument), func(v any) (nodeID, error) { return parseEntity(v, prefix) }), map[nodeID]struct{}{}
	for _, id := range all.Good {
		different[id] = struct{}{}
	}
	if n := len(different); n > limits.MaxEntities {
		return prefetch.Inputs[nodeID]{}, apierr.TooLong.Error("%d different representations are given, %d is the most", n, limits.MaxEntities).In("representations")
	}
	return all, nil
}

// parseEntity reads one of the keys that [sdl.Subgraph] gives a type. If both are given, the id counts.
func parseEntity(v any, prefix selections.Prefix) (nodeID, error) {
	representation, _ := v.(map[string]any)
	shown, _ := representation["__typename"].(string)
	typeName := prefix.Own(shown)
	if shown == "" {
		return nodeID{}, apierr.IDMalformed.Error("a representation has no __typename").In("representations")
	}
	handle, byHandle := representation["handle"].(string)
	if typeName == "User" && byHandle && representation["id"] == nil {
		return nodeID{typeName: typeName, handle: storage.FoldHandle(handle)}, nil
	}
	if representation["id"] == nil {
		return nodeID{}, apierr.IDMalformed.Error("a representation of %q has no key: see the @key directives of its type", abridged(shown)).In("representations")
	}
	text, _ := graphql.UnmarshalID(representation["id"]) // a router may send a number
	id, err := parseNodeID("representations", text)
	if err == nil && id.typeName != typeName {
		err = apierr.IDMalformed.Error("%q is not an id of type %q", abridged(text), abridged(shown)).In("representations")
	}
	return id, err
}

var entitiesField = nodesBy(func(ctx context.Context, f *selections.Field) (prefetch.Inputs[nodeID], error) {
	entities, err := parseEntities(f.Argument(ctx, "representations"), selections.PrefixOf(graphql.GetOperationContext(ctx)))
	return resolverOf(ctx).served(entities), err
})

func (queries) Entities(ctx context.Context, _ []any) ([]model.Node, error) {
	return nodes(ctx, prefetch.Each(ctx))
}

func (r queries) Service(_ context.Context) (model.Service, error) {
	if r.HideSchema {
		return model.Service{}, apierr.SchemaHidden.Error("the schema is hidden: compose from what `kith schema --federation` prints")
	}
	text, err := r.Subgraph()
	return model.Service{Sdl: text}, err
}
