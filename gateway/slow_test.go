package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"kith/gateway"
	"kith/internal/check"
	"kith/storage"
)

// reads is a resolver that reads from two shards: a look-up of which half is in memory, and a number of statements that
// belong to no look-up.
func reads(statements int) resolver {
	return func(ctx context.Context, _ map[string]any) (any, error) {
		time.Sleep(2 * time.Millisecond) // longer than the tests' limit
		r := storage.ReadsOf(ctx)
		var b storage.Bundle
		storage.UserLookups.Ask(&b, make([]storage.UserID, 20)...)
		_, of, end := r.Begin(ctx, &b)
		of.InMemory(10)
		of.Note(storage.Read{Lookup: "users", Shard: 3, Keys: 10, Rows: 9, Took: 1500 * time.Microsecond})
		end()
		for range statements {
			r.Note(storage.Read{Lookup: "states", Shard: 2, Keys: 1, Rows: 1, Err: errors.New("gone")})
		}
		return "world", nil
	}
}

func readingFrom(statements int) gateway.Config {
	return gateway.Config{Schema: newSchema(map[string]resolver{"hello": reads(statements), "touch": reads(statements)})}
}

// slowLines are the log lines about slow operations of one request.
func (s site) slowLines(id string) (lines []string) {
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "request_id="+id) && strings.Contains(line, `msg="slow operation"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestSlowOperationsAreLogged: each operation that takes long has a log line, over every transport.
func TestSlowOperationsAreLogged(t *testing.T) {
	cfg := readingFrom(1)
	cfg.SlowOperation = time.Millisecond
	s := serve(t, cfg)
	const text = "query Mine { hello }"
	s.query(text, "X-Request-Id", "named")
	s.query("{ hello }", "X-Request-Id", "nameless")
	s.query("mutation { touch }", "X-Request-Id", "mutation")
	s.query("query "+strings.Repeat("N", 1000)+" { hello }", "X-Request-Id", "longName")
	s.post(operation(text), "Accept", "text/event-stream", "X-Request-Id", "stream")
	s.query("{ nonsense }", "X-Request-Id", "refused")
	for id, lines := range map[string][][]string{
		"named":    {{"operation=query", "name=Mine", "sha256=40a847778d6640513770d6c76bdbec21d92650f77547187c9b28a82278745d1f"}},
		"nameless": {{"operation=query", "sha256="}},
		"mutation": {{"operation=mutation"}},
		"longName": {{"name=" + strings.Repeat("N", 100) + "… "}},
		"stream":   {{"name=Mine"}},
		"refused":  {},
	} {
		got := s.slowLines(id)
		if len(got) != len(lines) {
			t.Errorf("%s: %q", id, got)
			continue
		}
		for i, line := range got {
			check.Has(t, id, line, append(lines[i], "level=WARN", " took_ms=", " cost=1 ", " statements=2 ", " rows=10 ", ` shards="[2 3]" `, " errors=0")...)
		}
	}
}

// TestQuickOperationsAreNotLogged, and slow ones are not logged unless that is set.
func TestQuickOperationsAreNotLogged(t *testing.T) {
	for name, from := range map[string]time.Duration{"off": 0, "quick": time.Hour} {
		cfg := readingFrom(1)
		cfg.SlowOperation = from
		s := serve(t, cfg)
		s.query("{ hello }", "X-Request-Id", "a")
		check.Equal(t, name, s.slowLines("a"), nil)
	}
}
