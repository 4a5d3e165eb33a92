package storagetest_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/storagetest"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// proofs are the topics that prove the answers to a kind, by its name or by what its name begins with.
var proofs = map[string][]string{
	"users": {"users", "creation", "profile", "attributes", "userList"}, "handles": {"users", "creation"},
	"counts":     {"creation", "applyCounts", "friendCounts", "posts", "favorites"},
	"edges":      {"relations", "favorites", "edges"},
	"pages":      {"relations", "favorites", "pages"},
	"rows":       {"rows", "favorites"},
	"neighbours": {"neighbours"}, "blocks": {"blockLists"}, "edgecounts": {"count"},
	"marks": {"marks", "attributes"}, "specials": {"marks"}, "messages": {"messages", "requests"},
	"profiles": {"profiles"}, "snapshots": {"lists"}, "packed": {"packedNeighbours"},
	"posts": {"posts", "attributes", "comments", "favorites"}, "comments": {"comments"},
	"details": {"relations"}, "kinds": {"relations"}, "lists": {"userLists"}, "words": {"search"},
	"passwords": {"accounts"}, "states": {"states", "moderation", "accounts"}, "identities": {"identities"}, "moderation": {"moderation"},
	"popular": {"popular"}, "seen": {"seen"}, "imports": {"imports"}, "reactions": {"reactions"}, "relations": {"relations"},
}

// A flaw is something that may be wrong with the answers to any kind of look-ups.
type flaw struct {
	name  string
	ask   func(key reflect.Value)           // changes what is asked for
	say   func(keys, answers reflect.Value) // changes what is answered
	deaf  bool                              // contexts that have ended are served
	every string                            // the promise about every kind that has to notice it; "": one in the topics of the kind
}

// flaws are those of look-ups with keys of type k and answers of type v.
func flaws(k, v reflect.Type) []flaw {
	all := []flaw{
		{name: "ended contexts are served", deaf: true, every: "ErrorsAreOfEveryKey"},
		{name: "a key twice is answered once", every: "EachKeyIsAnsweredAsAlone", say: func(keys, answers reflect.Value) {
			for i := range keys.Len() {
				for j := range i {
					if reflect.DeepEqual(keys.Index(i).Interface(), keys.Index(j).Interface()) {
						answers.Index(i).SetZero()
					}
				}
			}
		}},
		{name: "answers are those to the next key", every: "EachKeyIsAnsweredAsAlone", say: func(_, answers reflect.Value) {
			for i, swap := 1, reflect.Swapper(answers.Interface()); i < answers.Len(); i++ {
				swap(i-1, i)
			}
		}},
		{name: "the first answer stays", every: "AnswersAreOfNow", say: remembering()},
		{name: "what is found is not", say: func(_, answers reflect.Value) {
			for _, found := range fields(answers, "Found") {
				found.SetBool(!found.Bool())
			}
		}},
	}
	if strings.Contains(k.Name(), "Query") {
		for i := range k.NumField() {
			all = append(all, flaw{name: k.Field(i).Name + " is not looked at", ask: func(key reflect.Value) {
				if key.Field(i).SetZero(); k.Field(i).Name == "Limit" {
					key.Field(i).SetInt(1 << 30)
				}
			}})
		}
	}
	return append(all, lost(v, "", func(answers reflect.Value) []reflect.Value { return fields(answers, "Value") })...)
}

// lost are the flaws that a part of a value is empty, and that a list is another.
func lost(v reflect.Type, path string, values func(answers reflect.Value) []reflect.Value) (all []flaw) {
	each := func(name string, change func(reflect.Value)) {
		all = append(all, flaw{name: path + name, say: func(_, answers reflect.Value) {
			for _, value := range values(answers) {
				change(value)
			}
		}})
	}
	parts := func(v reflect.Type, path string, of func(reflect.Value) []reflect.Value) {
		all = append(all, lost(v, path, func(answers reflect.Value) (parts []reflect.Value) {
			for _, value := range values(answers) {
				parts = append(parts, of(value)...)
			}
			return parts
		})...)
	}
	switch {
	case v.Kind() == reflect.Struct && v.NumField() > 0 && v.Field(0).IsExported():
		for i := range v.NumField() {
			parts(v.Field(i).Type, path+v.Field(i).Name+" ", func(value reflect.Value) []reflect.Value { return []reflect.Value{value.Field(i)} })
		}
	case v.Kind() == reflect.Slice:
		some := func(change func(list reflect.Value, n int)) func(reflect.Value) {
			return func(list reflect.Value) {
				if n := list.Len(); n > 0 {
					change(list, n)
				}
			}
		}
		each("without the first", some(func(list reflect.Value, n int) { list.Set(list.Slice(1, n)) }))
		each("without the last", some(func(list reflect.Value, n int) { list.Set(list.Slice(0, n-1)) }))
		each("with one more", some(func(list reflect.Value, n int) { list.Set(reflect.Append(list, list.Index(0))) }))
		each("backward", some(func(list reflect.Value, n int) {
			turned := reflect.AppendSlice(reflect.Zero(list.Type()), list)
			for i := range n {
				turned.Index(i).Set(list.Index(n - 1 - i))
			}
			list.Set(turned)
		}))
		parts(v.Elem(), path+"each ", func(list reflect.Value) (items []reflect.Value) {
			list.Set(reflect.AppendSlice(reflect.Zero(list.Type()), list)) // the store's own stays as it is
			for i := range list.Len() {
				items = append(items, list.Index(i))
			}
			return items
		})
	default:
		each("is empty", reflect.Value.SetZero)
	}
	return all
}

// fields is a field of each answer.
func fields(answers reflect.Value, name string) (all []reflect.Value) {
	for i := range answers.Len() {
		all = append(all, answers.Index(i).FieldByName(name))
	}
	return all
}

// remembering answers as it has answered first.
func remembering() func(keys, answers reflect.Value) {
	var mu sync.Mutex
	first := map[string]reflect.Value{}
	return func(keys, answers reflect.Value) {
		mu.Lock()
		defer mu.Unlock()
		for i := range keys.Len() {
			key, answer := fmt.Sprint(keys.Index(i).Interface()), answers.Index(i)
			if known, ok := first[key]; ok {
				answer.Set(known)
			} else if answer.FieldByName("Err").IsNil() {
				first[key] = reflect.ValueOf(answer.Interface())
			}
		}
	}
}

// harmless are flaws that are none: edges between users name no item, others have one type, requests are not packed, and what is not packed
// needs no error.
func harmless(kind, flaw string) bool {
	family, side, _ := strings.Cut(kind, ".")
	ofUsers := slices.ContainsFunc(storage.Sides[:], func(s storage.Side) bool { return s.String() == side })
	switch {
	case kind == "posts.latest" && strings.HasPrefix(flaw, "Of is not"), strings.HasPrefix(flaw, "Shard is not"): // all authors; one shard
		return true
	case kind == "users.after", kind == "states.changes": // to the end
		return strings.HasPrefix(flaw, "Until is not")
	case kind == "relations.due": // a relation has a type and an item; attributes are not read
		return strings.Contains(flaw, "Attributes")
	case family == "comments": // they come without keys
		return strings.Contains(flaw, "Key ")
	case kind == "imports": // they come without lines
		return strings.Contains(flaw, "Lines ")
	case family == "packed":
		return strings.HasPrefix(side, "friend") || strings.HasPrefix(flaw, "ended contexts")
	case ofUsers:
		return strings.Contains(flaw, "Item ")
	}
	return strings.HasPrefix(flaw, "Type is not")
}

// flawed answers look-ups of a kind with a flaw.
func flawed(lookup func(*storage.Bundle) any, f flaw) spoil {
	return func(s *oracle.Store, w *double.Store) {
		w.Instead.Bundle = func(ctx context.Context, b *storage.Bundle) {
			l := reflect.ValueOf(lookup(b)).Elem()
			keys, answers := l.FieldByName("Keys"), l.FieldByName("Results")
			asked := reflect.ValueOf(keys.Interface())
			open := answers.IsNil() && keys.Len() > 0
			if open && f.ask != nil {
				keys.Set(reflect.AppendSlice(reflect.Zero(keys.Type()), keys))
				for i := range keys.Len() {
					f.ask(keys.Index(i))
				}
			}
			if open && f.deaf {
				ctx = context.WithoutCancel(ctx)
			}
			s.Bundle(ctx, b)
			if keys.Set(asked); open && f.say != nil {
				f.say(keys, answers)
			}
		}
	}
}

// eachFlaw calls visit with all flaws of all kinds that stores have, or of one.
func eachFlaw(kind string, visit func(name string, in func(*storage.Bundle) any, f flaw)) {
	storage.EachKind(func(name string, in func(*storage.Bundle) any, cached bool) {
		lookup := reflect.TypeOf(in(new(storage.Bundle))).Elem()
		keys, _ := lookup.FieldByName("Keys")
		answers, _ := lookup.FieldByName("Results")
		value, _ := answers.Type.Elem().FieldByName("Value")
		for _, f := range flaws(keys.Type.Elem(), value.Type) {
			other := name == "pages.favorite" && keys.Type.Elem() == reflect.TypeFor[storage.PageQuery]() // favorites have pages of their own
			if strings.HasPrefix(name, "packed.") {                                                       // any list may be unpacked
				f.every = ""
			}
			if !cached && !other && !harmless(name, f.name) && (kind == "" || kind == name) {
				visit(name, in, f)
			}
		}
	})
}

// TestFlawsAreNoticed runs TestFlawed once for each kind of look-ups.
func TestFlawsAreNoticed(t *testing.T) {
	of := map[string][]string{}
	eachFlaw("", func(kind string, _ func(*storage.Bundle) any, f flaw) { of[kind] = append(of[kind], f.name) })
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, output := runChild(t, kind, "^TestFlawed$")
			for _, flaw := range of[kind] {
				check.That(t, strings.Contains(output, "--- FAIL: TestFlawed/"+strings.ReplaceAll(flaw, " ", "_")+" ("), "nothing fails if %s: %s", kind, flaw)
			}
			if t.Failed() {
				t.Log(output)
			}
		})
	}
}

// TestFlawed runs, in a child process, what has to notice the flaws of one kind.
func TestFlawed(t *testing.T) {
	kind, ok := os.LookupEnv(wrongStore)
	if !ok {
		t.Skip("runs in processes that TestFlawsAreNoticed starts")
	}
	eachFlaw(kind, func(_ string, lookup func(*storage.Bundle) any, f flaw) {
		t.Run(f.name, func(t *testing.T) {
			open := func(*testing.T) storage.Store { return spoiled(packing(oracle.New()), flawed(lookup, f)) }
			if f.every != "" {
				storagetest.Run(t, open, "bundles/"+f.every)
				return
			}
			family, _, _ := strings.Cut(kind, ".")
			for _, topic := range proofs[family] {
				if !t.Failed() {
					storagetest.Run(t, open, topic)
				}
			}
		})
	})
}
