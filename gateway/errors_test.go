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

	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway"
	"kith/gateway/exchange"
	"kith/graph/apierr"
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
			if len(got.Errors) != 1 {
				t.Fatalf("got %s", got.text)
			}
			message := got.Errors[0]["message"].(string)
			retryable := got.Errors[0]["extensions"].(map[string]any)["retryable"]
			if got.code(t) != tt.code || !strings.HasPrefix(message, tt.message) || retryable != tt.retryable {
				t.Errorf("got %s", got.text)
			}
			if strings.Contains(got.text, "hunter2") || strings.Contains(got.text, "SELECT") {
				t.Errorf("leaks: %s", got.text)
			}
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
		if log := s.log.String(); !strings.Contains(log, want) || !strings.Contains(log, got.header.Get("X-Request-Id")) {
			t.Errorf("%s: log %s", query, log)
		}
	}
	got := s.query("{ fail }")
	if id := got.Errors[0]["extensions"].(map[string]any)["requestId"]; id != got.header.Get("X-Request-Id") {
		t.Errorf("request id %v beside the error", id)
	}
}

// TestErrorsKeepTheRestOfTheAnswer: an error costs only its own field, and names it.
func TestErrorsKeepTheRestOfTheAnswer(t *testing.T) {
	got := serve(t, gateway.Config{}).query("{\n hello\n broken: fail\n}")
	if got.Data["hello"] != "world <3" || got.Data["broken"] != nil {
		t.Errorf("got %s", got.text)
	}
	if path := fmt.Sprint(got.Errors[0]["path"]); path != "[broken]" {
		t.Errorf("path %s", path)
	}
	if at := fmt.Sprint(got.Errors[0]["locations"]); !strings.Contains(at, "line:3") {
		t.Errorf("locations %s", at)
	}
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
				if lines := strings.Count(log.String(), "masked error"); lines != want {
					t.Errorf("%d causes in the log; want %d", lines, want)
				}
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
		if len(got.Errors) != 50 || got.Extras["errorsOmitted"] != 850.0 {
			t.Errorf("%d errors, extensions %v", len(got.Errors), got.Extras)
		}
	}
	if lines := strings.Count(s.log.String(), "masked error"); lines != 5 {
		t.Errorf("%d causes in the log; want 5", lines)
	}
	got := s.query("{ " + strings.Repeat("é", 20_000) + " }")
	if len(got.text) > 1000 {
		t.Errorf("an answer of %d bytes to a long name", len(got.text))
	}
	got = s.query("{ x" + strings.Repeat("y", 20_000) + " }")
	if len(got.text) > 1000 {
		t.Errorf("an answer of %d bytes to a long name", len(got.text))
	}
}

// TestTimeout: fields that are missing when the time ends are null, with an error. The other fields
// are in the answer, and the connection is not closed.
func TestTimeout(t *testing.T) {
	s := serve(t, gateway.Config{RequestTimeout: 500 * time.Millisecond})
	got := s.query("{ hello wait }", "Accept", "application/graphql-response+json")
	if got.status != 200 || got.Data["hello"] != "world <3" || got.code(t) != "TIMEOUT" {
		t.Errorf("got %d %s", got.status, got.text)
	}
	if !strings.Contains(s.log.String(), "outcome=timeout") {
		t.Errorf("log: %s", s.log)
	}
}

// TestTimeoutBeforeExecution: the time ends before the first field is executed.
func TestTimeoutBeforeExecution(t *testing.T) {
	s := serve(t, gateway.Config{RequestTimeout: time.Millisecond, PerRequest: func(ctx context.Context) context.Context {
		<-ctx.Done()
		return ctx
	}})
	if got := s.query("{ hello }"); got.status != 200 || got.code(t) != "TIMEOUT" {
		t.Errorf("got %d %s", got.status, got.text)
	}
	if got := s.query("{ hello }", "Accept", "application/graphql-response+json"); got.status != 504 || got.code(t) != "TIMEOUT" {
		t.Errorf("got %d %s", got.status, got.text)
	}
}

// TestPanicBesideTheFields: a panic outside the fields still gives an answer in the right form.
func TestPanicBesideTheFields(t *testing.T) {
	s := serve(t, gateway.Config{PerRequest: func(context.Context) context.Context { panic(secret) }})
	got := s.query("{ hello }")
	if got.status != 500 || got.code(t) != "INTERNAL_SERVER_ERROR" || strings.Contains(got.text, "hunter2") {
		t.Errorf("got %d %s", got.status, got.text)
	}
}

// TestArgumentErrorsEndAtTheField: gqlgen's own path also names the argument.
func TestArgumentErrorsEndAtTheField(t *testing.T) {
	got := serve(t, gateway.Config{}).query("{ sum: add(n: 99999999999) }")
	if path := fmt.Sprint(got.Errors[0]["path"]); path != "[sum]" {
		t.Errorf("path %s", path)
	}
}

// TestErrorsSuggestNoNames: a suggestion takes time, and reveals the schema to clients that may not see it.
func TestErrorsSuggestNoNames(t *testing.T) {
	s := serve(t, gateway.Config{})
	for _, query := range []string{"{ helo }", `{ fail(hoow: "x") }`, "{ ... on Qery { hello } }"} {
		if got := s.query(query); got.code(t) != "BAD_USER_INPUT" || strings.Contains(got.text, "Did you mean") {
			t.Errorf("%s: %s", query, got.text)
		}
	}
}

func TestIntrospectionCanBeSwitchedOff(t *testing.T) {
	const query = "{ __schema { queryType { name } } }"
	if got := serve(t, gateway.Config{}).query(query); got.Errors != nil {
		t.Errorf("on: %s", got.text)
	}
	got := serve(t, gateway.Config{HideSchema: true}).query(query)
	if got.code(t) != "FORBIDDEN" || strings.Contains(got.text, "queryType") {
		t.Errorf("off: %s", got.text)
	}
}

// TestOperationRefusedAsAWhole: proxies and clients repeat what is answered with 504, which would be of no use.
func TestOperationRefusedAsAWhole(t *testing.T) {
	s := serve(t, gateway.Config{MayAsk: func(context.Context, *ast.OperationDefinition) error {
		return apierr.NotRegistered.Error("register first")
	}})
	if got := s.query("{ hello }"); got.status != 200 || got.code(t) != "NOT_REGISTERED" {
		t.Errorf("got %d %s", got.status, got.text)
	}
	if got := s.query("{ hello }", "Accept", "application/graphql-response+json"); got.status != 403 || got.code(t) != "NOT_REGISTERED" {
		t.Errorf("got %d %s", got.status, got.text)
	}
}
