package resolvers

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/storage"
)

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

// A given is a list that a client has given. An error in one of its elements is
// reported at its index in the answer, and the others are answered.
type given[T any] struct {
	good    []T
	indexes []int // of the good ones, in the answer; nil: all are good
	wrong   []invalid
}

// invalid is the error at an index.
type invalid struct {
	index int
	err   error
}

func parseEach[V, T any](values []V, parse func(V) (T, error)) given[T] {
	g := given[T]{good: make([]T, 0, len(values))}
	for i, v := range values {
		one, err := parse(v)
		g.add(i, one, err)
	}
	return g
}

// add takes the element at an index. Indexes ascend.
func (g *given[T]) add(index int, one T, err error) {
	switch {
	case err != nil:
		if g.wrong == nil { // until here all were good
			g.indexes = make([]int, len(g.good))
			for i := range g.indexes {
				g.indexes[i] = i
			}
		}
		g.wrong = append(g.wrong, invalid{index, err})
		return
	case g.wrong != nil:
		g.indexes = append(g.indexes, index)
	}
	g.good = append(g.good, one)
}

// index is the index in the answer of one of the good elements.
func (g *given[T]) index(i int) int {
	if g.wrong == nil {
		return i
	}
	return g.indexes[i]
}

// at are the paths of the good elements.
func (g *given[T]) at(p paths) paths {
	return func(i int) []ast.Path { return p(g.index(i)) }
}

// placed puts the results of the good elements at their indexes, and reports the errors of
// the others.
func placed[T, M any](ctx context.Context, g given[T], made []M, at paths) []M {
	if g.wrong == nil {
		return made
	}
	all := make([]M, len(g.good)+len(g.wrong))
	for i, m := range made {
		all[g.indexes[i]] = m
	}
	for _, w := range g.wrong {
		failAt(ctx, at(w.index), w.err)
	}
	return all
}

func parseUserIDs(argument string, texts []string) (given[storage.UserID], error) {
	if err := checkLength(argument, len(texts), limits.MaxIDs); err != nil {
		return given[storage.UserID]{}, err
	}
	return parseEach(texts, func(text string) (storage.UserID, error) { return parseUserID(argument, text) }), nil
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
			id.typeName, rest = t.name, after
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
func parseUsers(by map[string]any) (given[nodeID], error) {
	for name, value := range by { // it has one field
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		if err := checkLength(name, len(list), limits.MaxIDs); err != nil {
			return given[nodeID]{}, err
		}
		return parseEach(list, func(v any) (id nodeID, err error) {
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
	return given[nodeID]{}, apierr.InvalidValue.Error("nothing is given by which to find users").In("by")
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
func pairsOf(from, to []string) (given[storage.Pair], error) {
	if n := len(from) * len(to); n > limits.MaxPairs {
		return given[storage.Pair]{}, apierr.TooLong.Error("%d pairs are asked for, %d is the most", n, limits.MaxPairs).In("to")
	}
	if err := checkLength("from", max(len(from), len(to)), limits.MaxPairs); err != nil {
		return given[storage.Pair]{}, err
	}
	pairs := given[storage.Pair]{good: make([]storage.Pair, 0, len(from)*len(to))}
	second := make([]storage.UserID, len(to)) // 0: it is malformed
	for j, text := range to {
		second[j], _ = parseUserID("to", text)
	}
	for i, text := range from {
		first, wrong := parseUserID("from", text)
		for j, id := range second {
			err := wrong
			if err == nil && id == 0 {
				err = notUserID("to", to[j])
			}
			pairs.add(i*len(to)+j, storage.Pair{From: first, To: id}, err)
		}
	}
	return pairs, nil
}

// abridged keeps an error from growing with what a client sends.
func abridged(text string) string { return apierr.Shortened(text, 40) }
