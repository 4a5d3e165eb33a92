package resolvers

import (
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
	"kith/graph/generated"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/graph/sdl"
	"kith/storage"
)

// parseEntities reads the representations of `_entities`. Apollo Gateway repeats an entity as often as it is named.
func parseEntities(argument any) (given[nodeID], error) {
	all, different := parseEach(graphql.CoerceList(argument), parseEntity), map[nodeID]struct{}{}
	for _, id := range all.good {
		different[id] = struct{}{}
	}
	if n := len(different); n > limits.MaxEntities {
		return given[nodeID]{}, apierr.TooLong.Error("%d different representations are given, %d is the most", n, limits.MaxEntities).In("representations")
	}
	return all, nil
}

// parseEntity reads one of the keys that [sdl.Subgraph] gives a type. If both are given, the id
// counts.
func parseEntity(v any) (nodeID, error) {
	representation, _ := v.(map[string]any)
	typeName, _ := representation["__typename"].(string)
	handle, byHandle := representation["handle"].(string)
	if typeName == "User" && byHandle && representation["id"] == nil {
		return nodeID{typeName: typeName, handle: storage.FoldHandle(handle)}, nil
	}
	if representation["id"] == nil {
		return nodeID{}, apierr.IDMalformed.Error("a representation of %q has no id", abridged(typeName)).In("representations")
	}
	text, _ := graphql.UnmarshalID(representation["id"]) // a router may send a number
	id, err := parseNodeID("representations", text)
	if err == nil && id.typeName != typeName {
		err = apierr.IDMalformed.Error("%q is not an id of type %q", abridged(text), abridged(typeName)).In("representations")
	}
	return id, err
}

func (queries) Entities(ctx context.Context, _ []any) ([]model.Node, error) {
	return nodes(ctx, each(ctx))
}

// subgraph is the schema as routers read it.
var subgraph = sync.OnceValues(func() (string, error) {
	return sdl.Subgraph(generated.NewExecutableSchema(generated.Config{}).Schema())
})

func (r queries) Service(_ context.Context) (model.Service, error) {
	if r.HideSchema {
		return model.Service{}, apierr.SchemaHidden.Error("the schema is hidden: compose from what `kith schema --federation` prints")
	}
	text, err := subgraph()
	return model.Service{Sdl: text}, err
}
