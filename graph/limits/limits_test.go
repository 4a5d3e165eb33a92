package limits_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// loadSchema reads the schema that the gateway serves.
func loadSchema(t testing.TB) *ast.Schema {
	t.Helper()
	files, err := filepath.Glob("../schema/*.graphqls")
	must.That(t, err == nil && len(files) > 0, "no schema files: %v", err)
	var sources []*ast.Source
	for _, file := range files {
		sources = append(sources, &ast.Source{Name: file, Input: string(must.File(t, file))})
	}
	schema, err := gqlparser.LoadSchema(sources...)
	must.OK(t, err)
	return schema
}

// prepare does with a query what the gateway does before it executes it: limits, parsing, validation,
// variables, cost.
type prepare func(query string, vars map[string]any) gqlerror.List

func newPrepare(t testing.TB, l limits.Limits) prepare {
	t.Helper()
	schema := loadSchema(t)
	costs, err := limits.New(schema, l, nil)
	must.OK(t, err)
	known := map[string]*ast.QueryDocument{}
	return func(query string, vars map[string]any) gqlerror.List {
		if err := limits.CheckVariables(vars); err != nil {
			return gqlerror.List{gqlerror.Wrap(err)}
		}
		doc := known[query]
		if doc == nil {
			var err error
			if doc, err = l.Parse(query); err != nil {
				return gqlerror.List{gqlerror.WrapIfUnwrapped(err)}
			}
			if errs := validator.ValidateWithRules(schema, doc, nil); errs != nil {
				return errs
			}
			if err := selections.Settle(doc); err != nil {
				return gqlerror.List{err}
			}
			known[query] = doc
		}
		op := &graphql.OperationContext{RawQuery: query, Doc: doc, Operation: doc.Operations.ForName("")}
		var err error
		if op.Variables, err = selections.Variables(schema, op.Operation, vars); err == nil {
			_, err = costs.Of(op)
		}
		if err != nil {
			return gqlerror.List{gqlerror.Wrap(err)}
		}
		return nil
	}
}

// wantCode checks that a query is refused with a code. "" means that it is accepted.
func wantCode(t *testing.T, errs gqlerror.List, code apierr.Code) *apierr.Error {
	t.Helper()
	if len(errs) == 0 {
		check.That(t, code == "", "let through; want %s", code)
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
		start := testenv.ProcessorTime()
		f()
		best = min(best, testenv.ProcessorTime()-start)
	}
	check.That(t, best <= limit*slowdown, "took %v; want at most %v", best, limit*slowdown)
	t.Logf("took %v", best)
}

func repeat(n int, part func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(part(i))
	}
	return b.String()
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
