package selections

import (
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
)

// Collect is [graphql.CollectFields]. It fails if @skip or @include takes a variable that is null, which is valid if the variable
// has a default; gqlgen panics then.
func Collect(op *graphql.OperationContext, sel ast.SelectionSet, types []string) (all []graphql.CollectedField, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			if err = NullDirective(reason); err == nil {
				panic(reason)
			}
		}
	}()
	return graphql.CollectFields(op, sel, types), nil
}

// NullDirective is the error that a panic of gqlgen about a directive stands for; nil if it is another panic.
func NullDirective(reason any) error {
	for _, name := range []string{"skip", "include"} {
		if reason == fmt.Sprintf("%s: argument 'if' is not a boolean", name) {
			return apierr.BadInput("argument %q of @%s: a variable is null, and Boolean! takes no null", "if", name)
		}
	}
	return nil
}

// CheckRoot refuses an operation whose root fields cannot be collected.
func CheckRoot(op *graphql.OperationContext) error {
	for _, value := range op.Variables {
		if value == nil {
			_, err := Collect(op, op.Operation.SelectionSet, nil)
			return err
		}
	}
	return nil
}
