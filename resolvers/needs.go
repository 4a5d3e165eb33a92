package resolvers

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/selections"
	"kith/identity"
	"kith/social"
	"kith/storage"
)

// userNeeds is what the selection on some users needs from the store.
type userNeeds struct {
	row           bool // any field of the row
	counts        bool
	relationships []relationshipField
	lists         []listField
	viewer        []relationshipNeeds // of the viewer towards each user
	sets          int                 // answers computed from several look-ups, on each user
	inverse       bool                // anything that is read from an inverse side or counted there
	varies        bool                // with the variables, or with who asks
	pool          bool                // the followings that the first suggestions come from
	lengths       bool                // of the lists that sets are made of

	opens  [2]bool       // Forward: it matters whether the followings are open; Inverse: the fans
	others []social.List // further lists of which that matters
}

// relationshipField is a `relationship(to:)` below a user.
type relationshipField struct {
	to storage.UserID
	relationshipNeeds
}

// relationshipNeeds is what the selection on a relationship needs.
type relationshipNeeds struct {
	sides    [2]bool          // Forward: from → to is read; Inverse: from ← to
	from, to ast.SelectionSet // nil: not selected

	// For the eyes of from alone.
	mark     bool
	requests [len(storage.Sides)]ast.SelectionSet // Requests: on the one from → to; Inbox: from ← to; nil: not selected

	fromKeys, toKeys []string                     // response keys of `from` and `to`
	requestKeys      [len(storage.Sides)][]string // and of `sentRequest` and `receivedRequest`
}

// listField is a `followings` or `followers` below a user.
type listField struct {
	side storage.Side
	page pageArguments
	connectionNeeds
}

// connectionNeeds is what the selection on a connection needs.
type connectionNeeds struct {
	rows  bool             // anything but totalCount and complete
	total bool             // totalCount
	users ast.SelectionSet // on the users of the page; nil: not selected

	cursors bool // `cursor` of the edges

	nodes []string    // response keys of `nodes`
	edges [][2]string // response keys of `edges` and the `node` in it
}

// fieldsOf lists the fields that a selection asks of a type, fragments and directives
// applied. Most selections are nothing but fields, of which there is nothing to collect.
func fieldsOf(ctx context.Context, sel ast.SelectionSet, types ...string) []graphql.CollectedField {
	if !selections.Simple(sel) {
		return graphql.CollectFields(graphql.GetOperationContext(ctx), sel, slices.Clone(types))
	}
	fields := make([]graphql.CollectedField, len(sel))
	for i, s := range sel {
		f := s.(*ast.Field)
		fields[i] = graphql.CollectedField{Field: f, Selections: f.SelectionSet}
	}
	return fields
}

func argumentsOf(ctx context.Context, f graphql.CollectedField) map[string]any {
	return f.ArgumentMap(graphql.GetOperationContext(ctx).Variables)
}

// argumentOf is one of [argumentsOf], which a variable most often holds.
func argumentOf(ctx context.Context, f graphql.CollectedField, name string) any {
	if given := f.Arguments.ForName(name); given != nil && given.Value.Kind == ast.Variable {
		if value, ok := graphql.GetOperationContext(ctx).Variables[given.Value.Raw]; ok {
			return value
		}
	}
	return argumentsOf(ctx, f)[name]
}

// selectedHere is the selection on what the running resolver returns.
func selectedHere(ctx context.Context) ast.SelectionSet {
	return graphql.GetFieldContext(ctx).Field.Selections
}

// needsOfUsers reads the needs off a selection. Whoever fetches asks, and whoever makes the
// users of what has been fetched.
func needsOfUsers(ctx context.Context, sel ast.SelectionSet) userNeeds {
	memo := selections.For(ctx)
	if known, ok := memo.Get(ofUsers, sel); ok {
		return known.(userNeeds)
	}
	viewer, _ := identity.Of(ctx)
	request := requestOf(ctx)
	if n, ok := request.knownNeeds(viewer.ID, sel); ok {
		return n
	}
	n := readNeedsOfUsers(ctx, sel)
	if !n.varies && selections.Simple(sel) {
		memo.Put(ofUsers, sel, n)
	}
	request.mu.Lock()
	defer request.mu.Unlock()
	if len(request.needs) < mostNeeds {
		request.needs = append(request.needs, knownNeeds{viewer.ID, sel, n})
	}
	return n
}

func (r *request) knownNeeds(viewer storage.UserID, sel ast.SelectionSet) (n userNeeds, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.needs {
		if known.viewer == viewer && slices.Equal(known.sel, sel) {
			return known.needs, true
		}
	}
	return n, false
}

// knownNeeds are the needs of a selection, which depend on who asks.
type knownNeeds struct {
	viewer storage.UserID
	sel    ast.SelectionSet
	needs  userNeeds
}

// mostNeeds is how many selections are remembered; they are looked through one by one.
const mostNeeds = 16

// What is remembered of a document's selections, by what they are made on.
type remembered string

const (
	ofUsers         remembered = "needs of users"
	ofRelationships remembered = "needs of relationships"
)

func readNeedsOfUsers(ctx context.Context, sel ast.SelectionSet) userNeeds {
	var n userNeeds
	for _, f := range fieldsOf(ctx, sel, "User", "Node") {
		switch f.Name {
		case "handle", "name", "bio", "avatarUrl", "createdAt", "listVisibility", "discoverable":
			n.row = true
		case "followingCount":
			n.counts = true
		case "followerCount":
			n.counts, n.inverse = true, true
		case "friendCount":
			n.counts, n.inverse, n.opens = true, true, [2]bool{true, true}
		case "followings":
			n.varies = true
			if onlySpecial(argumentsOf(ctx, f)) {
				n.sets++
				continue
			}
			n.addList(ctx, storage.Forward, f)
		case "followers":
			n.varies = true
			n.addList(ctx, storage.Inverse, f)
		case "friends", "notFollowingBack", "notFollowedBack":
			n.sets++
			n.inverse, n.opens = true, [2]bool{true, true}
		case "commonFollowings":
			n.varies = true
			n.sets++
			n.addCommon(storage.Forward, argumentOf(ctx, f, "with"))
		case "commonFollowers":
			n.varies = true
			n.sets++
			n.inverse = true
			n.addCommon(storage.Inverse, argumentOf(ctx, f, "with"))
		case "followersYouKnow":
			n.varies = true
			if _, ok := identity.Of(ctx); ok {
				n.sets++
				n.inverse, n.opens[storage.Inverse] = true, true
			}
		case "followSuggestions":
			n.sets++
			n.opens[storage.Forward] = true
			n.pool = n.pool || f.Arguments.ForName("after") == nil
		case "friendRequests":
			n.inverse = true
		case "viewerRelationship":
			n.varies = true
			if _, ok := identity.Of(ctx); ok {
				n.viewer = append(n.viewer, needsOfRelationship(ctx, f.Selections))
			}
		case "relationship":
			n.varies = true
			for _, to := range parseEach(texts(argumentOf(ctx, f, "to")), parseUserID).good {
				n.relationships = append(n.relationships, relationshipField{to, needsOfRelationship(ctx, f.Selections)})
			}
		}
	}
	return n
}

// readsInverse tells whether anything needed, here or below, comes from `follower` or
// is counted there.
func (n userNeeds) readsInverse(ctx context.Context) bool {
	for _, r := range n.viewer {
		if r.readsInverse(ctx) {
			return true
		}
	}
	for _, r := range n.relationships {
		if r.readsInverse(ctx) {
			return true
		}
	}
	for _, l := range n.lists {
		if l.side == storage.Inverse || needsOfUsers(ctx, l.users).readsInverse(ctx) {
			return true
		}
	}
	return n.inverse
}

func (n relationshipNeeds) readsInverse(ctx context.Context) bool {
	return n.sides[storage.Inverse] || n.requests[storage.Inbox] != nil || needsOfUsers(ctx, n.from).readsInverse(ctx) || needsOfUsers(ctx, n.to).readsInverse(ctx)
}

// addCommon leaves an id that is wrong to the field's own resolver, which refuses it.
func (n *userNeeds) addCommon(side storage.Side, with any) {
	n.opens[side], n.lengths = true, true
	for _, other := range parseEach(texts(with), parseUserID).good {
		n.others = append(n.others, social.List{Side: side, Owner: other})
	}
}

// onlySpecial tells whether followings are asked for with the filter `special`.
func onlySpecial(args map[string]any) bool {
	filter, _ := args["filter"].(map[string]any)
	special, _ := filter["special"].(bool)
	return special
}

// addList leaves arguments that are wrong to the list's own resolver, which
// refuses them.
func (n *userNeeds) addList(ctx context.Context, side storage.Side, f graphql.CollectedField) {
	page, err := pageOf(ctx, listKinds[side], argumentsOf(ctx, f))
	if err != nil {
		return
	}
	n.opens[side] = true
	list := listField{side, page, needsOfConnection(ctx, "UserConnection", "UserEdge", f.Selections)}
	n.counts = n.counts || list.total
	n.lists = append(n.lists, list)
}

// needsOfRelationship reads the needs off a selection. They follow from the document, but
// for fragments and directives.
func needsOfRelationship(ctx context.Context, sel ast.SelectionSet) relationshipNeeds {
	memo := selections.For(ctx)
	if known, ok := memo.Get(ofRelationships, sel); ok {
		return known.(relationshipNeeds)
	}
	n := readNeedsOfRelationship(ctx, sel)
	if selections.Simple(sel) {
		memo.Put(ofRelationships, sel, n)
	}
	return n
}

func readNeedsOfRelationship(ctx context.Context, sel ast.SelectionSet) relationshipNeeds {
	var n relationshipNeeds
	for _, f := range fieldsOf(ctx, sel, "Relationship", "Node") {
		switch f.Name {
		case "following", "followedAt", "blocking":
			n.sides[storage.Forward] = true
		case "followedBy", "followedByAt", "blockedBy":
			n.sides[storage.Inverse] = true
		case "status":
			n.sides = [2]bool{true, true}
		case "special", "remark":
			n.mark = true
		case "sentRequest":
			n.addRequest(storage.Requests, f)
		case "receivedRequest":
			n.addRequest(storage.Inbox, f)
		case "from":
			n.from = append(n.from, f.Selections...)
			n.fromKeys = append(n.fromKeys, f.Alias)
		case "to":
			n.to = append(n.to, f.Selections...)
			n.toKeys = append(n.toKeys, f.Alias)
		}
	}
	return n
}

func (n *relationshipNeeds) addRequest(side storage.Side, f graphql.CollectedField) {
	if n.requests[side] == nil {
		n.requests[side] = ast.SelectionSet{}
	}
	n.requests[side] = append(n.requests[side], f.Selections...)
	n.requestKeys[side] = append(n.requestKeys[side], f.Alias)
}

// needsOfConnection reads the needs off a selection, as [needsOfRelationship] does.
func needsOfConnection(ctx context.Context, connection, edge string, sel ast.SelectionSet) connectionNeeds {
	memo := selections.For(ctx)
	if known, ok := memo.Get(remembered(connection), sel); ok {
		return known.(connectionNeeds)
	}
	n := readNeedsOfConnection(ctx, connection, edge, sel)
	if selections.SimpleBelow(sel) {
		memo.Put(remembered(connection), sel, n)
	}
	return n
}

func readNeedsOfConnection(ctx context.Context, connection, edge string, sel ast.SelectionSet) connectionNeeds {
	var n connectionNeeds
	for _, f := range fieldsOf(ctx, sel, connection) {
		switch f.Name {
		case "totalCount":
			n.total = true
		case "pageInfo":
			n.rows = true
		case "nodes":
			n.rows = true
			n.nodes = append(n.nodes, f.Alias)
			n.users = append(n.users, f.Selections...)
		case "edges":
			n.rows = true
			for _, e := range fieldsOf(ctx, f.Selections, edge) {
				switch e.Name {
				case "cursor":
					n.cursors = true
				case "node":
					n.edges = append(n.edges, [2]string{f.Alias, e.Alias})
					n.users = append(n.users, e.Selections...)
				}
			}
		}
	}
	return n
}
