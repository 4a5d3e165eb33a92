package resolvers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/graph/apierr"
	"kith/graph/generated"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

// noWrites refuses every write, and notes it.
type noWrites struct{ asked []string }

func (n *noWrites) Write(_ context.Context, user storage.UserID, mutation string, objects int) error {
	n.asked = append(n.asked, fmt.Sprintf("%s %s %d", user, mutation, objects))
	return apierr.TooManyWrites.Error("wait")
}

// Every mutation of a user is counted before anything is done, once for each alias. Those that
// are not counted are for nobody who is signed in, for operators, or only give a token.
func TestMutationsAreLimited(t *testing.T) {
	store := storeOf(t, 3)
	apitest.Publish(t, store, 2)
	limit := &noWrites{}
	api := apitest.New(t, store, apitest.Options{MayWrite: limit.Write}).As(1)
	schema := generated.NewSchema(generated.Config{}).Schema()
	uncounted := []string{"register", "login", "renewToken", "linkIdentity", "createUser", "suspendUser", "reinstateUser", "removePost", "removeComment"}
	for _, field := range schema.Mutation.Fields {
		if strings.HasPrefix(field.Name, "__") {
			continue
		}
		var arguments []string
		objects := 1
		for _, a := range field.Arguments {
			if !a.Type.NonNull || a.DefaultValue != nil {
				continue
			}
			value := `"00000000-0000-4000-8000-000000000002"`
			switch {
			case a.Type.Elem != nil:
				value, objects = `["2", "3"]`, 2
			case a.Name == "userId":
				value = `"2"`
			case a.Type.Name() == "RequestKind":
				value = `FOLLOW`
			case a.Type.Name() == "AccountsKind":
				value = `BLOCKS`
			case a.Name == "listId":
				value = `"list_1_5"`
			case a.Name == "postId":
				value = `"2-2"`
			}
			arguments = append(arguments, a.Name+": "+value)
		}
		call := field.Name
		if len(arguments) > 0 {
			call += "(" + strings.Join(arguments, ", ") + ")"
		}
		limit.asked = nil
		api.Ask(fmt.Sprintf("mutation { a: %s { __typename } b: %[1]s { __typename } }", call), nil)
		if slices.Contains(uncounted, field.Name) {
			check.Equal(t, call, limit.asked, nil)
			continue
		}
		one := fmt.Sprintf("1 %s %d", field.Name, objects)
		check.Equal(t, call, limit.asked, []string{one, one})
	}
}
