package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway"
	"kith/gateway/exchange"
	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
)

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestErrorCodes(t *testing.T) {
	s := serve(t, gateway.Config{})
	tests := map[string]struct {
		query, code, message string
		retryable            bool
	}{
		"syntax":            {"{ hello", "BAD_USER_INPUT", "Expected Name, found <EOF>", false},
		"single quotes":     {"{ fail(name: 'x') }", "BAD_USER_INPUT", `Unexpected single quote character ('), did you mean to use a double quote (")?`, false},
		"curly quotes":      {"{ fail(name: \"é\", # é\n “x”) }", "BAD_USER_INPUT", "Cannot parse the unexpected character '“'.", false},
		"no invalid token":  {`"<Invalid>" { id }`, "BAD_USER_INPUT", `Unexpected String "<Invalid>"`, false},
		"an open text":      {"{ fail(name: \"x) }", "BAD_USER_INPUT", "Unterminated string.", false},
		"unknown field":     {"{ helo }", "BAD_USER_INPUT", `Cannot query field "helo" on type "Query".`, false},
		"unknown argument":  {"{ add(m: 1) }", "BAD_USER_INPUT", `Unknown argument "m" on field "Query.add".`, false},
		"missing variable":  {"query ($n: Int!) { add(n: $n) }", "BAD_USER_INPUT", "variable $n: nothing is given, and it takes Int!", false},
		"Int of 64 bits":    {"{ add(n: 99999999999) }", "BAD_USER_INPUT", `argument "n": 99999999999 overflows signed 32-bit integer`, false},
		"bad input":         {`{ fail(name: "input") }`, "BAD_USER_INPUT", "ids are positive", false},
		"not found":         {`{ fail(name: "notfound") }`, "NOT_FOUND", "there is no such user", false},
		"rate":              {`{ fail(name: "rate") }`, "RATE_LIMITED", "too many follows for now", true},
		"shard unavailable": {`{ fail(name: "shard") }`, "UNAVAILABLE", "a part of the data cannot be reached at the moment", true},
		"anything else":     {"{ fail }", "INTERNAL_SERVER_ERROR", "something went wrong on the server", false},
		"panic":             {`{ fail(name: "panic") }`, "INTERNAL_SERVER_ERROR", "something went wrong on the server", false},
		"too costly":        {"{" + strings.Repeat(" a: hello", 500) + " }", "QUERY_TOO_COSTLY", "the query has too many", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := s.query(tt.query)
			must.Equal(t, got.text, len(got.Errors), 1)
			got.is(t, name, 200, tt.code)
			message := got.Errors[0]["message"].(string)
			check.That(t, strings.HasPrefix(message, tt.message), "the message is %s", message)
			check.Equal[any](t, "retryable", got.Errors[0]["extensions"].(map[string]any)["retryable"], tt.retryable)
			check.Lacks(t, name, got.text, "hunter2", "SELECT")
		})
	}
}

// TestMaskedErrorsAreInTheLog, with the id that the client got.
func TestMaskedErrorsAreInTheLog(t *testing.T) {
	s := serve(t, gateway.Config{})
	for query, want := range map[string]string{
		"{ fail }":                 "SELECT password_hash",
		`{ fail(name: "shard") }`:  "read users on shard 3",
		`{ fail(name: "panic") }`:  "goroutine",
		`{ x: fail y: hello }`:     "SELECT password_hash",
		`{ x: fail(name: null) } `: "SELECT password_hash",
	} {
		got := s.query(query)
		check.Has(t, query, s.log.String(), want, got.header.Get("X-Request-Id"))
	}
	got := s.query("{ fail }")
	check.Equal[any](t, "request id beside the error", got.Errors[0]["extensions"].(map[string]any)["requestId"], got.header.Get("X-Request-Id"))
}

// TestErrorsKeepTheRestOfTheAnswer: an error costs only its own field, and names it.
func TestErrorsKeepTheRestOfTheAnswer(t *testing.T) {
	got := serve(t, gateway.Config{}).query("{\n hello\n broken: fail\n}")
	check.Equal(t, "data", got.Data, map[string]any{"hello": "world <3", "broken": nil})
	check.Equal(t, "path", fmt.Sprint(got.Errors[0]["path"]), "[broken]")
	check.Has(t, "locations", fmt.Sprint(got.Errors[0]["locations"]), "line:3")
}

// TestAConnectionThatStaysOpenLogsOn: whatever ends its subscriptions is in the log on the next day, too.
func TestAConnectionThatStaysOpenLogsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		exchange.Handler(new(atomic.Bool), logger, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			fail := func(want int) {
				for range 9 {
					exchange.Presenter(logger)(r.Context(), errors.New("fault"))
				}
				check.Equal(t, "causes in the log", strings.Count(log.String(), "masked error"), want)
			}
			fail(5)
			time.Sleep(24 * time.Hour)
			fail(6)
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	})
}

// TestNoAmplification: a longer request does not make the list of errors, their texts, or the log longer.
func TestNoAmplification(t *testing.T) {
	s := serve(t, gateway.Config{})
	var unknown, failing strings.Builder
	for i := range 900 {
		fmt.Fprintf(&unknown, " x%d", i)
		fmt.Fprintf(&failing, " x%d: fail", i)
	}
	for _, query := range []string{"{" + unknown.String() + "}", "{" + failing.String() + "}"} {
		got := s.query(query)
		check.Equal(t, "errors", len(got.Errors), 50)
		check.Equal[any](t, "errors that were left out", got.Extras["errorsOmitted"], 850.0)
	}
	check.Equal(t, "causes in the log", strings.Count(s.log.String(), "masked error"), 5)
	s.query("{" + strings.ReplaceAll(failing.String()[:len(" x000: fail")*300], "fail", `fail(name: "panic")`) + "}")
	check.Equal(t, "panics in the log", strings.Count(s.log.String(), "msg=panic"), 5)
	for _, long := range []string{strings.Repeat("é", 20_000), "x" + strings.Repeat("y", 20_000)} {
		check.Most(t, "the bytes of an answer to a long name", len(s.query("{ "+long+" }").text), 1000)
	}
}

// TestTimeout: fields that are missing when the time ends are null, with an error. The other fields
// are in the answer, and the connection is not closed.
func TestTimeout(t *testing.T) {
	s := serve(t, gateway.Config{RequestTimeout: 500 * time.Millisecond})
	s.query("{ hello wait }", "Accept", "application/graphql-response+json").is(t, "one field waits", 200, "TIMEOUT", `"hello":"world`)
	check.Has(t, "the log", s.log.String(), "outcome=timeout")
}

// TestTimeoutBeforeExecution: the time ends before the first field is executed.
func TestTimeoutBeforeExecution(t *testing.T) {
	s := serve(t, gateway.Config{RequestTimeout: time.Millisecond, PerRequest: func(ctx context.Context) context.Context {
		<-ctx.Done()
		return ctx
	}})
	s.query("{ hello }").is(t, "as JSON", 200, "TIMEOUT")
	s.query("{ hello }", "Accept", "application/graphql-response+json").is(t, "as a response", 504, "TIMEOUT")
}

// TestPanicBesideTheFields: a panic outside the fields still gives an answer in the right form.
func TestPanicBesideTheFields(t *testing.T) {
	s := serve(t, gateway.Config{PerRequest: func(context.Context) context.Context { panic(secret) }})
	got := s.query("{ hello }")
	got.is(t, "a panic", 500, "INTERNAL_SERVER_ERROR")
	check.Lacks(t, "the answer", got.text, "hunter2")
}

// TestArgumentErrorsEndAtTheField: gqlgen's own path also names the argument.
func TestArgumentErrorsEndAtTheField(t *testing.T) {
	got := serve(t, gateway.Config{}).query("{ sum: add(n: 99999999999) }")
	check.Equal(t, "path", fmt.Sprint(got.Errors[0]["path"]), "[sum]")
}

// TestErrorsSuggestNoNames: a suggestion takes time, and reveals the schema to clients that may not see it.
func TestErrorsSuggestNoNames(t *testing.T) {
	s := serve(t, gateway.Config{})
	for _, query := range []string{"{ helo }", `{ fail(hoow: "x") }`, "{ ... on Qery { hello } }"} {
		got := s.query(query)
		got.is(t, query, 200, "BAD_USER_INPUT")
		check.Lacks(t, query, got.text, "Did you mean")
	}
}

func TestIntrospectionCanBeSwitchedOff(t *testing.T) {
	const query = "{ __schema { queryType { name } } }"
	serve(t, gateway.Config{}).query(query).is(t, "on", 200, "")
	hidden := serve(t, gateway.Config{HideSchema: true})
	for range 2 { // the second time, the text is known
		got := hidden.query(query)
		got.is(t, "off", 200, "FORBIDDEN")
		check.Lacks(t, "off", got.text, "queryType")
	}
}

// TestOperationRefusedAsAWhole: proxies and clients repeat what is answered with 504, which would be of no use.
func TestOperationRefusedAsAWhole(t *testing.T) {
	s := serve(t, gateway.Config{MayAsk: func(context.Context, *ast.OperationDefinition) error {
		return apierr.NotRegistered.Error("register first")
	}})
	s.query("{ hello }").is(t, "as JSON", 200, "NOT_REGISTERED")
	s.query("{ hello }", "Accept", "application/graphql-response+json").is(t, "as a response", 403, "NOT_REGISTERED")
}

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
