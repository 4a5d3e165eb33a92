package resolvers

import (
	"context"

	"kith/graph/limits"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// mostAmong is how many edges one answer of `edgesAmong` has at most: some 500 kB.
const mostAmong = 100_000

func (r queries) EdgesAmong(ctx context.Context, texts []string) (*model.EdgesAmong, error) {
	return shared(ctx, fetchQuery(ctx).Same, func() (*model.EdgesAmong, error) { return r.edgesAmong(ctx, texts) })
}

func (r queries) edgesAmong(ctx context.Context, texts []string) (*model.EdgesAmong, error) {
	if err := checkLength("ids", len(texts), limits.MaxAmong); err != nil {
		return nil, err
	}
	var ids idSet
	places := make([]int, 0, len(texts)) // of the distinct ids, in the answer
	for i, text := range texts {
		id, err := parseUserID("ids", text)
		if err != nil {
			return nil, err
		}
		ids.Add(id, struct{}{})
		if len(ids.Keys()) > len(places) {
			places = append(places, i)
		}
	}
	graph, err := r.graph(ctx, loaders.For(ctx).Reader())
	if err != nil {
		return nil, err
	}
	var lists []social.List // two of each user
	for _, id := range ids.Keys() {
		lists = append(lists, bothLists(id)...)
	}
	open, err := readOpen(ctx, lists)
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
	answer := &model.EdgesAmong{Followings: make([][]int32, len(texts)), Complete: found.Complete}
	for i := range answer.Followings {
		answer.Followings[i] = []int32{}
	}
	for from, followings := range found.Followings {
		answer.Followings[places[from]] = storage.Each(followings, func(to int) int32 { return int32(places[to]) })
	}
	return answer, nil
}
