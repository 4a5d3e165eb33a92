package selections_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"kith/graph/generated"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/internal/check"
	"kith/internal/must"
)

func selectionOf(t *testing.T, text string) ast.SelectionSet {
	t.Helper()
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	must.OK(t, err)
	return doc.Operations[0].SelectionSet
}

func TestMemoDistinguishesSelections(t *testing.T) {
	var m selections.Memo
	ctx := selections.With(context.Background(), &m)
	sel := selectionOf(t, "{ a b c }")
	merged := append(ast.SelectionSet{}, sel...)
	selections.For(ctx).Put("plan", sel, 1)
	selections.For(ctx).Put("plan", sel, 2) // the plan is known from now on
	selections.For(ctx).Put("needs", sel, 3)
	selections.For(ctx).Put("plan", sel[:2], 4)
	for _, tt := range []struct {
		of   string
		sel  ast.SelectionSet
		want any
	}{
		{"plan", sel, 1}, {"plan", merged, 1}, {"needs", sel, 3}, {"plan", sel[:2], 4},
		{"plan", sel[1:], nil}, {"plan", nil, nil}, {"plan", selectionOf(t, "{ a b c }"), nil},
	} {
		got, ok := m.Get(tt.of, tt.sel)
		check.That(t, got == tt.want && ok == (tt.want != nil), "the %s of %v is %v, %v, want %v", tt.of, tt.sel, got, ok, tt.want)
	}
	merged[0] = merged[1] // the collector of the fields may use the slice for other fields
	got, _ := m.Get("plan", sel)
	check.That(t, got == 1, "the plan is %v", got)
	var none *selections.Memo
	none.Put("plan", sel, 1)
	_, ok := none.Get("plan", sel)
	check.That(t, !ok && selections.For(context.Background()) == nil, "there is something in no memo")
}

func TestMemoIsBounded(t *testing.T) {
	var m selections.Memo
	sel := selectionOf(t, "{ a }")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 1000 {
				m.Put(fmt.Sprint(i, n), sel, n)
			}
		})
	}
	all.Wait()
	kept := 0
	for i := range 4 {
		for n := range 1000 {
			if value, ok := m.Get(fmt.Sprint(i, n), sel); ok {
				kept++
				must.That(t, value == n, "the value of %d is %v", n, value)
			}
		}
	}
	check.That(t, kept != 0 && kept <= 100, "%d of 4,000 values are kept", kept)
}

func TestOnlyFieldsAreSimple(t *testing.T) {
	long := "{ "
	for i := range 33 {
		long += fmt.Sprintf("f%d ", i)
	}
	for text, want := range map[string]bool{
		"{ a b: a c { d { e } } }":         true,
		"{ a a }":                          false, // two fields to merge
		"{ a b @include(if: true) }":       false,
		"{ a ... { b } }":                  false,
		"{ a ...F } fragment F on T { b }": false,
		"{ a { b c @skip(if: $no) c } }":   true,
		long + "}":                         false,
	} {
		sel := selectionOf(t, text)
		check.Equal(t, text, selections.Simple(sel), want)
	}
}

// gqlgen remembers what it collects of a selection by where that is in memory. A selection of which it answers a part is another one
// once the first has been given up, and lies where that did.
func TestSelectionsThatAreNotKeptAreDistinguished(t *testing.T) {
	doc, errs := gqlparser.LoadQueryWithRules(generated.NewExecutableSchema(generated.Config{}).Schema(),
		`{ a: user(by: {id: 1}) { name followings { totalCount } } b: user(by: {id: 2}) { name followers { totalCount } } }`, nil)
	must.That(t, errs == nil, "%v", errs)
	op := &graphql.OperationContext{Doc: doc, Operation: doc.Operations[0]}
	var full selections.Memo
	for i := range 100 {
		full.Put(i, nil, i)
	}
	ctx := selections.With(graphql.WithOperationContext(t.Context(), op), &full)
	for i := range 2000 {
		asked := op.Operation.SelectionSet[i%2].(*ast.Field).SelectionSet
		list := asked[1].(*ast.Field)
		selections.AnswerObject(ctx, "User", false, asked, &model.User{}, func(_ context.Context, sel ast.SelectionSet, _ *model.User) graphql.Marshaler {
			all := graphql.CollectFields(op, sel, []string{"User"})
			must.Equal(t, "the field that is answered", all[len(all)-1].Name, list.Name)
			return graphql.Null
		})
		if i%100 == 0 {
			runtime.GC()
		}
	}
}
