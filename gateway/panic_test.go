package gateway_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/must"
)

// frail is a schema that panics while an operation is validated, once it is armed.
type frail struct {
	graphql.ExecutableSchema
	armed atomic.Bool
}

func (f *frail) Schema() *ast.Schema {
	if f.armed.Load() {
		panic("nil map in " + secret)
	}
	return f.ExecutableSchema.Schema()
}

// TestPanicBeforeExecution: a panic while an operation is read or validated ends only that
// operation, on every transport.
func TestPanicBeforeExecution(t *testing.T) {
	schema := &frail{ExecutableSchema: newSchema(nil)}
	s := serve(t, gateway.Config{Schema: schema})
	c := s.joined()
	for i, id := range []string{"a", "a", "b"} { // the second "a" shows that the id is free again
		schema.armed.Store(true)
		c.subscribe(id, "{ hello "+strings.Repeat(" ", i)+"}") // each text is new, so none is in the cache
		got, err := c.read()
		must.That(t, err == nil && strings.HasPrefix(got, `{"id":"`+id+`","type":"error","payload":[{"message":"something went wrong on the server"`), "got %s %v", got, err)
	}
	s.query("{ hello    }").is(t, "over HTTP", 500, "INTERNAL_SERVER_ERROR", `"message":"something went wrong on the server"`)
	schema.armed.Store(false)
	c.subscribe("a", "{ hello }")
	c.expect(`{"id":"a","type":"next","payload":{"data":{"hello":"world \u003c3"}}}`)
	c.expect(`{"id":"a","type":"complete"}`)
	check.Equal(t, "panics in the log", strings.Count(s.log.String(), "level=ERROR msg=panic"), 4)
}
