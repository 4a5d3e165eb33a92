package resolvers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/storage"
)

// userArgument reads the id of a user that an argument names.
func userArgument(ctx context.Context, f *selections.Field, name string) (storage.UserID, error) {
	text, _ := f.Argument(ctx, name).(string)
	return parseUserID(name, text)
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

// maxIDLength is the length of the greatest id.
const maxIDLength = 19

// parseUserID takes canonical decimal text only: MySQL would take '10abc' for 10.
func parseUserID(argument, text string) (storage.UserID, error) {
	id, err := parseNumber(argument, text)
	if id > storage.MaxUserID {
		return 0, notUserID(argument, text)
	}
	return id, err
}

// parseNumber parses an id, or the number of a post, which may be greater.
func parseNumber(argument, text string) (storage.UserID, error) {
	if len(text) > maxIDLength { // an error of strconv would hold all of it
		return 0, notUserID(argument, text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || text[0] == '+' || text[0] == '0' {
		return 0, notUserID(argument, text)
	}
	return storage.UserID(n), nil
}

func notUserID(argument, text string) error {
	return apierr.IDMalformed.Error("%q is not a user's id: it is a decimal number from 1 to %d", abridged(text), storage.MaxUserID).In(argument)
}

func parseUserIDs(argument string, texts []string) (prefetch.Inputs[storage.UserID], error) {
	if err := checkLength(argument, len(texts), limits.MaxIDs); err != nil {
		return prefetch.Inputs[storage.UserID]{}, err
	}
	return prefetch.ParseInputs(texts, func(text string) (storage.UserID, error) { return parseUserID(argument, text) }), nil
}

func checkLength(what string, n, most int) error {
	if n > most {
		return apierr.TooLong.Error("%d %s are given, %d is the most", n, what, most).In(what)
	}
	return nil
}

// nodeID is a parsed id of any type of Node.
type nodeID struct {
	typeName string
	prefix   string       // of two that a type may have
	numbers  storage.Pair // the id of a user is the first one; zero: of nobody
	handle   string       // of a user, instead of the id, folded
}

// of is the type of the node.
func (id nodeID) of() *nodeType {
	at := slices.IndexFunc(nodeTypes, func(t nodeType) bool { return t.name == id.typeName })
	return &nodeTypes[at]
}

func (id nodeID) user() storage.UserID { return id.numbers.From }

func (id nodeID) pair() storage.Pair { return id.numbers }

func (id nodeID) post() storage.PostID {
	return storage.PostID{Author: id.numbers.From, Number: int64(id.numbers.To)}
}

func (id nodeID) comment() storage.CommentID {
	return storage.CommentID{Author: id.numbers.From, Number: int64(id.numbers.To)}
}

func (id nodeID) list() storage.ListID {
	return storage.ListID{Owner: id.numbers.From, Number: int64(id.numbers.To)}
}

func parseNodeID(argument, text string) (id nodeID, err error) {
	rest := text
	for _, t := range nodeTypes {
		if after, ok := strings.CutPrefix(text, t.prefix); ok {
			id.typeName, id.prefix, rest = t.name, t.prefix, after
		}
	}
	if id.typeName == "User" {
		id.numbers.From, err = parseUserID(argument, rest)
	} else {
		id.numbers, err = parsePair(argument, rest)
	}
	if err != nil {
		return nodeID{}, apierr.IDMalformed.Error("%q is not an id", abridged(text)).In(argument)
	}
	return id, nil
}

// parseUsers reads a value of UserBy or of UsersBy.
func parseUsers(by map[string]any) (prefetch.Inputs[nodeID], error) {
	for name, value := range by { // it has one field
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		if err := checkLength(name, len(list), limits.MaxIDs); err != nil {
			return prefetch.Inputs[nodeID]{}, err
		}
		return prefetch.ParseInputs(list, func(v any) (id nodeID, err error) {
			text, _ := v.(string)
			id.typeName = "User"
			if name == "handle" || name == "handles" {
				id.handle = storage.FoldHandle(text)
			} else {
				id.numbers.From, err = parseUserID(name, text)
			}
			return id, err
		}), nil
	}
	return prefetch.Inputs[nodeID]{}, apierr.InvalidValue.Error("nothing is given by which to find users").In("by")
}

// parsePair takes two ids with an underscore between them.
func parsePair(argument, text string) (storage.Pair, error) {
	from, to, _ := strings.Cut(text, "_")
	a, err := parseUserID(argument, from)
	if err != nil {
		return storage.Pair{}, err
	}
	b, err := parseNumber(argument, to)
	return storage.Pair{From: a, To: b}, err
}

// pairsOf is the grid of from and to, row by row.
func pairsOf(from, to []string) (prefetch.Inputs[storage.Pair], error) {
	if n := len(from) * len(to); n > limits.MaxPairs {
		return prefetch.Inputs[storage.Pair]{}, apierr.TooLong.Error("%d pairs are asked for, %d is the most", n, limits.MaxPairs).In("to")
	}
	if err := checkLength("from", max(len(from), len(to)), limits.MaxPairs); err != nil {
		return prefetch.Inputs[storage.Pair]{}, err
	}
	pairs := prefetch.Inputs[storage.Pair]{Good: make([]storage.Pair, 0, len(from)*len(to))}
	second := make([]storage.UserID, len(to)) // 0: it is malformed
	for j, text := range to {
		second[j], _ = parseUserID("to", text)
	}
	for i, text := range from {
		first, wrong := parseUserID("from", text)
		for j, id := range second {
			err := wrong
			if id == 0 {
				err = apierr.All(wrong, notUserID("to", to[j]))
			}
			pairs.Add(i*len(to)+j, storage.Pair{From: first, To: id}, err)
		}
	}
	return pairs, nil
}

// abridged keeps an error from growing with what a client sends.
func abridged(text string) string { return apierr.Shortened(text, 40) }

func (queries) User(ctx context.Context, _ model.UserBy) (*model.User, error) {
	return only(usersBy(ctx, prefetch.Here(ctx)))
}

func (queries) Users(ctx context.Context, _ model.UsersBy) ([]*model.User, error) {
	return usersBy(ctx, prefetch.Each(ctx))
}

// usersBy answers a root field that is a user or a list of users.
func usersBy(ctx context.Context, at prefetch.Paths) ([]*model.User, error) {
	f := fetchQuery(ctx)
	ids, err := prefetch.ArgumentsOf[prefetch.Inputs[nodeID]](prefetch.RequestOf(ctx), f)
	if err != nil {
		return nil, err
	}
	where := ids.At(at)
	found, indexes := prefetch.Users{Exist: true, On: f.Below}, []int{}
	for i, id := range withIDs(ctx, ids.Good, func(i int, err error) { prefetch.FailAt(ctx, where(i), err) }) {
		if user := id.numbers.From; user != 0 {
			found.IDs, indexes = append(found.IDs, user), append(indexes, i)
		}
	}
	users := make([]*model.User, len(ids.Good))
	for k, u := range usersOf(ctx, found, where.Of(indexes...)) {
		if i := indexes[k]; ids.Good[i].isOf(u) {
			users[i] = u
		}
	}
	return prefetch.Placed(ctx, ids, users, at), nil
}

// only is the element of a list of one.
func only[T any](list []T, err error) (one T, _ error) {
	if err != nil {
		return one, err
	}
	return list[0], nil
}

// withIDs fills in the ids of users that are named by their handles. The handles have been fetched. If a handle belongs to nobody, or if
// its shard does not answer, the id is zero; failed gets the error and the index.
func withIDs(ctx context.Context, nodes []nodeID, failed func(i int, err error)) []nodeID {
	if !slices.ContainsFunc(nodes, func(id nodeID) bool { return id.handle != "" }) {
		return nodes
	}
	all := slices.Clone(nodes)
	for i, id := range nodes {
		if id.handle == "" {
			continue
		}
		user, err := byHandle(ctx, id.handle)
		if err != nil {
			failed(i, err)
		}
		all[i].numbers.From = user
	}
	return all
}

// isOf reports whether a user has the handle by which it was found: somebody may have claimed the handle for it in vain.
func (id nodeID) isOf(u *model.User) bool {
	return u == nil || id.handle == "" || id.handle == u.Row.Handle
}

// byHandle is the user for whom a folded handle is claimed, which has been fetched; 0 if the handle belongs to nobody.
func byHandle(ctx context.Context, handle string) (storage.UserID, error) {
	if !storage.ValidHandle(handle) { // nobody has it
		return 0, nil
	}
	r := loaders.For(ctx).Handles.Load(handle)
	if r.Err != nil {
		return 0, fmt.Errorf("resolve handle %q: %w", handle, r.Err)
	}
	return r.Value, nil
}

func (queries) Node(ctx context.Context, _ string) (model.Node, error) {
	return only(nodes(ctx, prefetch.Here(ctx)))
}

func (queries) Nodes(ctx context.Context, _ []string) ([]model.Node, error) {
	return nodes(ctx, prefetch.Each(ctx))
}

// nodes answers a root field that is one node or a list of them.
func nodes(ctx context.Context, at prefetch.Paths) ([]model.Node, error) {
	f := fetchQuery(ctx)
	ids, err := prefetch.ArgumentsOf[prefetch.Inputs[nodeID]](prefetch.RequestOf(ctx), f)
	if err != nil {
		return nil, err
	}
	where := ids.At(at)
	ids.Good = withIDs(ctx, ids.Good, func(i int, err error) { prefetch.FailAt(ctx, where(i), err) })
	all := make([]model.Node, len(ids.Good))
	for i, id := range ids.Good {
		on := f.On(id.typeName)
		if id.numbers != (storage.Pair{}) {
			all[i] = id.of().show(ctx, id, []*selections.Object{on}, where.Of(i))
		}
		if all[i] != nil && on.Err != nil {
			all[i] = nil
			prefetch.FailAt(ctx, where(i), on.Err)
		}
		if u, is := all[i].(*model.User); is && !id.isOf(u) {
			all[i] = nil
		}
	}
	return prefetch.Placed(ctx, ids, all, at), nil
}

func askUserNodes(ctx context.Context, level *prefetch.Level, ids []nodeID, on []*selections.Object) {
	prefetch.Users{IDs: storage.Each(ids, nodeID.user), Exist: true, On: on}.AddTo(ctx, level)
}

// orNil is the node in a list of at most one.
func orNil[T any, N interface {
	*T
	model.Node
}](list []N) model.Node {
	for _, one := range list {
		if one != nil {
			return one
		}
	}
	return nil
}

// fetchQuery reads what the query needs, the first time that it is called in a request, and returns the running field.
func fetchQuery(ctx context.Context) *selections.Field { return prefetch.FetchQuery(ctx, fetchHandles) }

// fetchHandles resolves the handles of all root fields in one batch.
func fetchHandles(ctx context.Context, root []*selections.Field) {
	var handles []string
	for _, f := range root {
		if _, byHandle := f.Read.(*prefetch.Field[prefetch.Root, prefetch.Inputs[nodeID]]); !byHandle {
			continue
		}
		ids, _ := prefetch.ArgumentsOf[prefetch.Inputs[nodeID]](prefetch.RequestOf(ctx), f)
		for _, id := range ids.Good {
			if storage.ValidHandle(id.handle) {
				handles = append(handles, id.handle)
			}
		}
	}
	if len(handles) > 0 {
		loaders.For(ctx).Handles.Fetch(handles)
	}
}

// The root fields that are nodes.
var (
	usersField = nodesBy(func(ctx context.Context, f *selections.Field) (prefetch.Inputs[nodeID], error) {
		by, _ := f.Argument(ctx, "by").(map[string]any)
		return parseUsers(by)
	})
	nodesField = nodesBy(func(ctx context.Context, f *selections.Field) (prefetch.Inputs[nodeID], error) {
		name := "id"
		if f.Has("ids") {
			name = "ids"
		}
		ids := texts(ctx, f, name)
		if err := checkLength(name, len(ids), limits.MaxIDs); err != nil {
			return prefetch.Inputs[nodeID]{}, err
		}
		return resolverOf(ctx).served(prefetch.ParseInputs(ids, func(text string) (nodeID, error) {
			id, _ := parseNodeID(name, text) // another's id may be a node behind the same router
			return id, nil
		})), nil
	})
)

// nodesBy is a root field that is nodes.
func nodesBy(parse func(context.Context, *selections.Field) (prefetch.Inputs[nodeID], error)) *prefetch.Field[prefetch.Root, prefetch.Inputs[nodeID]] {
	return prefetch.NewField(parse, func(ctx context.Context, level *prefetch.Level, f *selections.Field, ids prefetch.Inputs[nodeID], _ []prefetch.Root) {
		known := withIDs(ctx, ids.Good, func(int, error) {})
		for _, on := range f.Below {
			ofType, isOther := known, func(id nodeID) bool { return id.typeName != on.Type || id.numbers == storage.Pair{} }
			if slices.ContainsFunc(known, isOther) {
				ofType = slices.DeleteFunc(slices.Clone(known), isOther)
			}
			if len(ofType) > 0 {
				ofType[0].of().ask(ctx, level, ofType, []*selections.Object{on})
			}
		}
	})
}

// served are nodes, without those of types that the schema lacks, which do not exist.
func (r *Resolver) served(ids prefetch.Inputs[nodeID]) prefetch.Inputs[nodeID] {
	for i, id := range ids.Good {
		if r.Schema != nil && r.Schema.Types[id.typeName] == nil {
			ids.Good[i] = nodeID{}
		}
	}
	return ids
}
