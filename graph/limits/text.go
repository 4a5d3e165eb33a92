package limits

import (
	"strings"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"kith/graph/apierr"
)

// CheckText parses a query text and checks its shape against the limits, without the schema.
// Returned errors are [apierr.Error] or, for syntax errors, the parser's.
func (l Limits) CheckText(text string) error {
	l = l.withDefaults()
	if len(text) > l.TextBytes {
		return apierr.TooCostly(uint64(len(text)), uint64(l.TextBytes),
			"the query text has %d bytes and may have at most %d: pass values as variables", len(text), l.TextBytes)
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, l.Tokens)
	if err != nil {
		// The parser has no error type of its own for this.
		if strings.Contains(err.Error(), "token limit") {
			return apierr.TooCostly(uint64(l.Tokens)+1, uint64(l.Tokens),
				"the query text has more than %d tokens: pass values as variables", l.Tokens)
		}
		errcode.Set(err, errcode.ParseFailed)
		return err
	}
	return newShape(doc, l).check()
}

func tooMany(what string, count uint64, limit int) error {
	return apierr.TooCostly(count, uint64(max(0, limit)), "the query has too many %s: at most %d are allowed", what, limit)
}

func tooDeep(depth, limit int) error {
	return apierr.TooCostly(uint64(depth), uint64(limit), "the query nests fields %d deep: at most %d levels are allowed", depth, limit)
}

// positioned is an error about a position in the text.
func positioned(at *ast.Position, format string, args ...any) error {
	err := gqlerror.ErrorPosf(at, format, args...)
	err.Err = apierr.BadInput(format, args...)
	return err
}
