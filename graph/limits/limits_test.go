package limits_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/graph/selections"
)

// loadSchema reads the schema that the gateway serves.
func loadSchema(t testing.TB) *ast.Schema {
	t.Helper()
	files, err := filepath.Glob("../schema/*.graphqls")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schema files: %v", err)
	}
	var sources []*ast.Source
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &ast.Source{Name: file, Input: string(text)})
	}
	schema, err := gqlparser.LoadSchema(sources...)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// prepare does with a query what gqlgen does before it executes it: limits, parsing, validation,
// variables, cost.
type prepare func(query string, vars map[string]any) gqlerror.List

func newPrepare(t testing.TB, l limits.Limits) prepare {
	t.Helper()
	schema := loadSchema(t)
	cache := settled{graphql.MapCache[*ast.QueryDocument]{}}
	extension := limits.New(l, cache)
	exec := executor.New(&graphql.ExecutableSchemaMock{SchemaFunc: func() *ast.Schema { return schema }})
	exec.SetQueryCache(cache)
	exec.SetParserTokenLimit(extension.Tokens())
	exec.Use(extension)
	return func(query string, vars map[string]any) gqlerror.List {
		ctx := graphql.StartOperationTrace(context.Background())
		_, errs := exec.CreateOperationContext(ctx, &graphql.RawParams{Query: query, Variables: vars})
		return errs
	}
}

// settled settles documents, as the gateway does.
type settled struct {
	graphql.MapCache[*ast.QueryDocument]
}

func (s settled) Add(ctx context.Context, text string, doc *ast.QueryDocument) {
	_ = selections.Settle(doc)
	s.MapCache.Add(ctx, text, doc)
}

// wantCode checks that a query is refused with a code. "" means that it is accepted.
func wantCode(t *testing.T, errs gqlerror.List, code apierr.Code) *apierr.Error {
	t.Helper()
	if len(errs) == 0 {
		if code != "" {
			t.Errorf("let through; want %s", code)
		}
		return nil
	}
	err, ok := apierr.Of(errs[0])
	switch {
	case code == "":
		t.Errorf("refused: %v", errs)
	case !ok || err.Code != code:
		t.Errorf("refused with %v; want %s", errs[0], code)
	}
	return err
}

func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	// Other processes do not count in the process's own time, but the runtime's work does. So the
	// fastest of ten runs counts.
	best := time.Hour
	for try := 0; try < 10 && best > limit*slowdown; try++ {
		start := cpuTime(t)
		f()
		best = min(best, cpuTime(t)-start)
	}
	if best > limit*slowdown {
		t.Errorf("took %v; want at most %v", best, limit*slowdown)
	}
	t.Logf("took %v", best)
}

// cpuTime is the processor time that the process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func repeat(n int, part func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(part(i))
	}
	return b.String()
}

// TestKnownTextsAreNotCheckedAgain: a text in the query cache passes, whatever its shape.
func TestKnownTextsAreNotCheckedAgain(t *testing.T) {
	const query = "{ viewer { id name handle } }"
	schema := loadSchema(t)
	document, err := gqlparser.LoadQueryWithRules(schema, query, nil)
	if err != nil {
		t.Fatal(err)
	}
	extension := limits.New(limits.Limits{Tokens: 3}, graphql.MapCache[*ast.QueryDocument]{query: document})
	if err := extension.MutateOperationParameters(t.Context(), &graphql.RawParams{Query: query}); err != nil {
		t.Errorf("known: %v", err)
	}
	if err := extension.MutateOperationParameters(t.Context(), &graphql.RawParams{Query: query + " "}); err == nil {
		t.Error("unknown: let through")
	}
}

var cachedPrepare prepare

// newPrepareCached uses one server with the default limits for all calls, because loading the
// schema takes longer than what is measured.
func newPrepareCached(t testing.TB) prepare {
	if cachedPrepare == nil {
		cachedPrepare = newPrepare(t, limits.Limits{})
	}
	return cachedPrepare
}
