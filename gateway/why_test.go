package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway"
	"kith/graph/apierr"
	"kith/graph/why"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// TestWhyIsToldToOperatorsOnly: by each way of asking, with each kind of answer, and never with the reasons of another answer.
func TestWhyIsToldToOperatorsOnly(t *testing.T) {
	note := func(ctx context.Context, user storage.UserID) {
		if reasons, asked := ctx.Value(why.Key{}).(*why.Reasons); asked {
			reasons.Add(ast.Path{ast.PathName("hello")}, why.Block, user)
		}
	}
	var asked storage.UserID
	s := serve(t, gateway.Config{
		Identify: func(_ http.Header, r *http.Request) (context.Context, error) {
			return context.WithValue(r.Context(), operatorKey{}, r.Header.Get("Operator") != ""), nil
		},
		IsAdmin: func(ctx context.Context) bool { is, _ := ctx.Value(operatorKey{}).(bool); return is },
		Schema: newSchema(map[string]resolver{"hello": func(ctx context.Context, _ map[string]any) (any, error) {
			asked++
			note(ctx, asked)
			return "world", nil
		}, "touch": func(ctx context.Context, _ map[string]any) (any, error) {
			return nil, apierr.Unreachable.Error("a shard does not answer")
		}}),
	})
	const asking = `{"query":"{ hello }","extensions":{"why":true}}`
	ask := func(operator string) map[string]string {
		_, once := s.subscribeSSE("{ hello }", "Operator", operator, "Kith-Why", "1").next()
		c := s.joined("Operator", operator)
		c.send(`{"type":"subscribe","id":"a","payload":` + asking + `}`)
		socket, _ := c.read()
		return map[string]string{
			"header": s.query("{ hello }", "Kith-Why", "1", "Operator", operator).text, "extension": s.post(asking, "Operator", operator).text,
			"GET":    s.get("/graphql?query=%7Bhello%7D&extensions=%7B%22why%22:true%7D", "Operator", operator).text,
			"events": once, "socket": socket,
		}
	}
	for range 2 {
		for _, operator := range []string{"", "yes", ""} {
			for way, text := range ask(operator) {
				n := strings.Count(text, `"rule"`)
				check.That(t, strings.Contains(text, `"why":[{"path":["hello"],"rule":"block","about":"`) == (operator != "") && n <= 1 && (operator != "" || n == 0), "operator %q, %s: %s", operator, way, text)
			}
			check.Lacks(t, "nobody asks", s.query("{ hello }", "Operator", operator).text, "why")
		}
	}
	check.Has(t, "of an error", s.query("mutation { touch }", "Kith-Why", "1", "Operator", "yes").text, `"why":[{"path":["touch"],"rule":"dead shard"}]`)
	many := "mutation {"
	for i := range 60 { // more than an answer lists errors
		many += fmt.Sprintf(" a%d: touch", i)
	}
	text := s.query(many+" }", "Kith-Why", "1", "Operator", "yes").text
	check.Equal(t, "reasons", strings.Count(text, "dead shard"), 60)
	check.Has(t, "the answer", text, `"errorsOmitted":10`)
}

// TestReasonsAreBounded: in number, in length, and each once; several may be added at the same time.
func TestReasonsAreBounded(t *testing.T) {
	reasons := new(why.Reasons)
	long := ast.Path{}
	for range 1000 {
		long = append(long, ast.PathName(strings.Repeat("x", 1000)))
	}
	var all sync.WaitGroup
	for i := range 4 * why.Most {
		all.Go(func() {
			reasons.Add(long, why.Hidden, storage.UserID(1+i/2))
			reasons.Add(nil, why.Limit, storage.UserID(1+i/2))
		})
	}
	all.Wait()
	list := reasons.All()
	once := map[string]bool{}
	for _, one := range list {
		once[fmt.Sprint(one)] = true
		must.That(t, len(one.Path) == 0, "a path of %d bytes", len(one.Path.String()))
	}
	check.That(t, len(list) == why.Most && len(once) == why.Most, "%d reasons, %d of them differ", len(list), len(once))
}
