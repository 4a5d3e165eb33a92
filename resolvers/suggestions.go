package resolvers

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/social"
	"kith/storage"
)

// suggestionsAt answers `followSuggestions`.
func (r *Resolver) suggestionsAt(ctx context.Context, obj *model.User, first *int32, after *string) (*model.SuggestionConnection, error) {
	ctx, graph, leave := r.setAnswer(ctx)
	defer leave()
	size, text, err := setArguments(first, after)
	if err != nil {
		return nil, err
	}
	var from social.SuggestionMark
	if text != "" {
		if from, err = decodeSuggestionMark(text, obj.UserID); err != nil {
			return nil, err
		}
	}
	via := viaOf(ctx)
	s, err := graph.Suggest(ctx, obj.UserID, from, size, via.most)
	if err != nil {
		return nil, err
	}
	page := make([]entry, len(s.Suggestions))
	for i, one := range s.Suggestions {
		mark := social.SuggestionMark{Pool: from.Pool, Mutual: one.Mutual, ID: one.ID}
		page[i] = entry{user: one.ID, cursor: encodeSuggestionMark(obj.UserID, mark)}
	}
	n := needsOfConnection(ctx, "SuggestionConnection", "SuggestionEdge", selectedHere(ctx))
	fetchSuggested(ctx, n, page, via, s.Suggestions)
	users := usersOnPage(ctx, n, page)
	c := &model.SuggestionConnection{
		Nodes: users, Complete: s.Complete,
		Edges:    make([]*model.SuggestionEdge, len(page)),
		PageInfo: pageInfoOf(page, text, s.More, encodeSuggestionMark(obj.UserID, s.Next)),
	}
	for i, one := range s.Suggestions {
		c.Edges[i] = &model.SuggestionEdge{
			Cursor: page[i].cursor, Node: users[i],
			Score: float64(one.Mutual), MutualCount: int32(one.Mutual),
			Via: one.Via,
		}
	}
	return c, nil
}

// viaNeeds is what the `via` fields below a connection of suggestions need.
type viaNeeds struct {
	most int              // the greatest `first` of them
	sel  ast.SelectionSet // of them all
}

const defaultVia = 3

func viaOf(ctx context.Context) viaNeeds {
	var n viaNeeds
	for _, edges := range fieldsOf(ctx, selectedHere(ctx), "SuggestionConnection") {
		if edges.Name != "edges" {
			continue
		}
		for _, f := range fieldsOf(ctx, edges.Selections, "SuggestionEdge") {
			if f.Name != "via" {
				continue
			}
			size := defaultVia
			if first, given, err := sizeOf("first", argumentsOf(ctx, f)["first"]); given && err == nil {
				size = first
			}
			n.most = max(n.most, size)
			n.sel = append(n.sel, f.Selections...)
		}
	}
	return n
}

// fetchSuggested reads the users of a page of suggestions together with those who
// speak for them.
func fetchSuggested(ctx context.Context, n connectionNeeds, page []entry, via viaNeeds, suggestions []social.Suggestion) {
	var level []wanted
	if n.users != nil && len(page) > 0 {
		w := wanted{sel: n.users}
		for _, e := range page {
			w.users = append(w.users, e.user)
		}
		level = append(level, w)
	}
	if via.sel != nil {
		w := wanted{sel: via.sel}
		for _, s := range suggestions {
			w.users = append(w.users, s.Via...)
		}
		level = append(level, w)
	}
	fetch(ctx, level...)
}

// viaAt answers `via`.
func viaAt(ctx context.Context, obj *model.SuggestionEdge, first *int32) ([]*model.User, error) {
	size := defaultVia
	if n, given, err := sizeOf("first", first); given {
		if err != nil {
			return nil, err
		}
		size = n
	}
	w := wanted{users: obj.Via[:min(size, len(obj.Via))], sel: selectedHere(ctx)}
	return usersOf(ctx, w, func(i int) []ast.Path { return []ast.Path{below(ctx, i)} }), nil
}

func encodeSuggestionMark(owner storage.UserID, m social.SuggestionMark) string {
	return cursor.Encode(cursor.Suggestions, int64(owner), int64(m.Pool.UpdateTime), int64(m.Pool.Peer), int64(m.Mutual), int64(m.ID))
}

func decodeSuggestionMark(text string, owner storage.UserID) (social.SuggestionMark, error) {
	var user, at, peer, mutual, id int64
	if err := cursor.Decode(cursor.Suggestions, text, &user, &at, &peer, &mutual, &id); err != nil {
		return social.SuggestionMark{}, err
	}
	if storage.UserID(user) != owner {
		return social.SuggestionMark{}, otherList(text)
	}
	pool := storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}
	return social.SuggestionMark{Pool: pool, Mutual: int(mutual), ID: storage.UserID(id)}, nil
}
