package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"kith/gateway"
	"kith/internal/check"
	"kith/storage"
)

// TestCostWhereverOneAsks: the cost is reported if a header or an extension asks for it, for one operation or a list,
// over plain HTTP, events and WebSockets. Only admins are told what was read.
func TestCostWhereverOneAsks(t *testing.T) {
	costWhereverOneAsks(t, true, `"extensions":{"cost":{"actual":{"rows":5,"statements":1},"estimated":1}}`)
	costWhereverOneAsks(t, false, `"extensions":{"cost":{"estimated":1}}`)
}

func costWhereverOneAsks(t *testing.T, isAdmin bool, want string) {
	s := serve(t, gateway.Config{IsAdmin: func(context.Context) bool { return isAdmin }, Schema: newSchema(map[string]resolver{"hello": func(ctx context.Context, _ map[string]any) (any, error) {
		storage.ReadsOf(ctx).Note(storage.Read{Rows: 5})
		return "world", nil
	}})})
	const asking = `{"query":"{ hello }","extensions":{"cost":true}}`
	for name, got := range map[string]string{
		"by header":    s.query("{ hello }", "Kith-Cost", "1").text,
		"by extension": s.post(asking).text,
		"a mutation":   strings.Replace(s.query("mutation { touch }", "Kith-Cost", "1").text, `"rows":0,"statements":0`, `"rows":5,"statements":1`, 1),
		"by GET":       s.get("/graphql?query=%7Bhello%7D&extensions=%7B%22cost%22:true%7D").text,
		"as a stream":  s.post(asking, "Accept", "text/event-stream").text,
	} {
		check.Equal(t, name+": "+got, strings.Count(got, want), 1)
	}
	for name, got := range map[string]reply{
		"nobody asks":   s.query("{ hello }"),
		"another value": s.query("{ hello }", "Kith-Cost", "true"),
		"no":            s.post(`{"query":"{ hello }","extensions":{"cost":false}}`),
		"not executed":  s.query("{ nonsense }", "Kith-Cost", "1"),
	} {
		check.Lacks(t, name, got.text, "cost")
	}
	c := s.joined()
	c.send(`{"type":"subscribe","id":"a","payload":` + asking + `}`)
	c.reads(want)
}

func operation(query string) string {
	text, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		panic(err)
	}
	return string(text)
}
