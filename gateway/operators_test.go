package gateway_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway"
	"kith/gateway/trusted"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/internal/check"
	"kith/internal/must"
)

// forOperators are the test's schemas: operators have the fields `hidden` and `alarm` more. The definitions of the others are the same.
func forOperators() selections.Schemas {
	whole := gqlparser.MustLoadSchema(&ast.Source{Input: testSchema + "extend type Query { hidden: String } extend type Subscription { alarm: String }"})
	public := *whole
	less := func(d *ast.Definition, field string) *ast.Definition {
		own := *d
		public.Types[d.Name] = &own
		own.Fields = slices.DeleteFunc(slices.Clone(d.Fields), func(f *ast.FieldDefinition) bool { return f.Name == field })
		return &own
	}
	public.Types = maps.Clone(whole.Types)
	public.Query, public.Subscription = less(whole.Query, "hidden"), less(whole.Subscription, "alarm")
	answering := func(schema *ast.Schema, who string) graphql.ExecutableSchema {
		mock := newSchema(map[string]resolver{
			"hello":  func(context.Context, map[string]any) (any, error) { return who, nil },
			"hidden": func(context.Context, map[string]any) (any, error) { return "known to operators", nil },
			"alarm": func(context.Context, map[string]any) (any, error) {
				alarms := make(chan string, 1)
				alarms <- "known to operators"
				close(alarms)
				return alarms, nil
			},
		}).(*graphql.ExecutableSchemaMock)
		mock.SchemaFunc = func() *ast.Schema { return schema }
		return mock
	}
	return selections.Schemas{Schema: answering(&public, "public"), Operators: answering(whole, "operators")}
}

type operatorKey struct{}

// TestFieldsOfOperators: for everybody else they do not exist, by any way of asking, before and after an operator has asked the same.
func TestFieldsOfOperators(t *testing.T) {
	const query, alarm = "query H { hidden }", "subscription { alarm }"
	folder := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(folder, "a.json"), fmt.Appendf(nil, `{"h": "query Trusted { hidden }", "both": "query Both { hello }"}`), 0o644))
	schemas := forOperators()
	documents, err := trusted.Load(trusted.Folder(folder), schemas, limits.Limits{})
	must.OK(t, err)
	s := serve(t, gateway.Config{
		Schema: schemas.Schema, Operators: schemas.Operators, Trusted: documents,
		Identify: func(_ http.Header, r *http.Request) (context.Context, error) {
			return context.WithValue(r.Context(), operatorKey{}, r.Header.Get("Operator") != ""), nil
		},
		IsAdmin: func(ctx context.Context) bool { is, _ := ctx.Value(operatorKey{}).(bool); return is },
	})
	socket := func(operator, query string) string {
		c := s.joined("Operator", operator)
		c.subscribe("1", query)
		got, _ := c.read()
		return got
	}
	hash := fmt.Sprintf(`"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}`, sha(query))
	for range 2 {
		for _, operator := range []string{"", "yes", ""} {
			_, streamed := s.subscribeSSE(alarm, "Operator", operator).next()
			_, once := s.subscribeSSE(query, "Operator", operator).next()
			for way, got := range map[string]string{
				"POST": s.query(query, "Operator", operator).text, "GET": s.get("/graphql?query="+url.QueryEscape(query), "Operator", operator).text,
				"its hash": s.post(`{"query":"`+query+`",`+hash+`}`, "Operator", operator).text, "trusted": s.post(`{"documentId":"h"}`, "Operator", operator).text,
				"trusted, as a text": s.query("query Trusted { hidden }", "Operator", operator).text, "events": streamed, "a query among events": once,
				"a WebSocket": socket(operator, query), "a subscription": socket(operator, alarm),
			} {
				check.That(t, strings.Contains(got, "known to operators") == (operator != "") && strings.Contains(got, "Cannot query field") == (operator == ""), "operator %q, %s: %s", operator, way, got)
			}
			want := map[string]string{"": "public", "yes": "operators"}[operator]
			for way, got := range map[string]reply{"a text": s.query("{ hello }", "Operator", operator), "an id": s.post(`{"documentId":"both"}`, "Operator", operator)} {
				check.Equal[any](t, way, got.Data["hello"], want)
			}
		}
	}
	file := s.operators("/schema.graphql").text
	check.Has(t, "the file", file, "hello")
	check.Lacks(t, "the file", file, "hidden")
}
