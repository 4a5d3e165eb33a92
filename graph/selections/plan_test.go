package selections_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/fields"
	"kith/graph/generated"
	"kith/graph/selections"
	"kith/internal/check"
	"kith/internal/must"
)

// planOf plans the first operation of a document. memo is the memo of the document.
func planOf(t *testing.T, text string, vars map[string]any, memo *selections.Memo) *selections.Plan {
	t.Helper()
	doc, errs := gqlparser.LoadQueryWithRules(generated.NewExecutableSchema(generated.Config{}).Schema(), text, nil)
	must.That(t, errs == nil, "%v", errs)
	return planOfDocument(t.Context(), doc, vars, memo)
}

func planOfDocument(ctx context.Context, doc *ast.QueryDocument, vars map[string]any, memo *selections.Memo) *selections.Plan {
	op := &graphql.OperationContext{Doc: doc, Operation: doc.Operations[0], Variables: vars}
	return selections.Of(selections.With(graphql.WithOperationContext(ctx, op), memo), selections.Reads{"Query": {"user": ahead{}}, "User": {"followings": ahead{}}})
}

// ahead is how a field is read of whose arguments nothing is needed.
type ahead struct{}

func (ahead) Parse(context.Context, *selections.Field) any { return nil }

func TestAPlanHasWhatIsSelectedOnce(t *testing.T) {
	p := planOf(t, `query($id: ID!) { user(by: {id: $id}) { name ...F followings(first: 3) { nodes { id } } f: followings { totalCount edges { cursor node { bio } } } } }
		fragment F on Node { ... on User { followings(first: 3) { nodes { followerCount } } } }`, nil, nil)
	user := p.Root.Fields[0].On("User")
	lists := user.Named("followings")
	if len(p.Root.Fields) != 1 || len(lists) != 2 || len(p.Asked) != 3 {
		t.Fatalf("%d root fields, %d lists, %d with arguments", len(p.Root.Fields), len(lists), len(p.Asked))
	}
	check.Equal(t, "the user needs", user.Needs(false), fields.Row|fields.Inverse)
	merged, aliased := lists[0].Below[0], lists[1].Below[0]
	check.Equal(t, "those on the merged page need", merged.Items[0].Needs(false), fields.Counts|fields.Inverse)
	check.Equal(t, "the other page needs", aliased.Needs(false), fields.Rows|fields.Total|fields.Cursors)
	check.Equal(t, "those on it need", aliased.Items[0].Needs(false), fields.Row)
}

// TestOperationsThatShareAFragmentHavePlansOfTheirOwn: another one may merge its root field with others.
func TestOperationsThatShareAFragmentHavePlansOfTheirOwn(t *testing.T) {
	doc, errs := gqlparser.LoadQueryWithRules(generated.NewExecutableSchema(generated.Config{}).Schema(),
		`mutation A { ...F } mutation B { ...F follow(userId: 2) { viewer { id } } } fragment F on Mutation { follow(userId: 2) { changed } }`, nil)
	must.That(t, errs == nil, "%v", errs)
	var memo selections.Memo
	for i, viewers := range []int{0, 1} {
		op := &graphql.OperationContext{Doc: doc, Operation: doc.Operations[i]}
		all, err := selections.Collect(op, op.Operation.SelectionSet, []string{"Mutation"})
		must.OK(t, err)
		ctx := graphql.WithFieldContext(graphql.WithOperationContext(t.Context(), op), &graphql.FieldContext{Object: "Mutation", Field: all[0]})
		p := selections.Of(selections.With(ctx, &memo), nil)
		check.Equal(t, fmt.Sprintf("how often operation %d plans the viewer", i), len(p.Root.Fields[0].Below[0].Named("viewer")), viewers)
	}
}

func TestWhatANodeMayBeIsPlannedForEachType(t *testing.T) {
	p := planOf(t, `{ node(id: 1) { id ... on User { name } ... on Relationship { followedBy } } }`, nil, nil)
	var types []string
	for _, o := range p.Root.Fields[0].Below {
		types = append(types, o.Type)
	}
	if slices.Sort(types); !slices.Equal(types, []string{"Comment", "List", "Post", "Relationship", "Request", "User"}) {
		t.Errorf("planned for %v", types)
	}
	for typeName, want := range map[string]fields.Needs{"User": fields.Row, "Relationship": fields.Back | fields.Inverse, "Request": 0} {
		check.Equal(t, typeName, p.Root.Fields[0].On(typeName).Needs(true), want)
	}
}

func TestSomeIsNeededOnlyWhereSomebodyIsSignedIn(t *testing.T) {
	p := planOf(t, `{ user(by: {id: 1}) { name followersYouKnow { totalCount } } }`, nil, nil)
	user := p.Root.Fields[0].On("User")
	got, want := user.Needs(false), fields.Row
	check.That(t, got == want, "where nobody is signed in, %b is needed, want %b", got, want)
	got, want = user.Needs(true), fields.Row|fields.Counts|fields.Inverse|fields.OpenFollowers
	check.That(t, got == want, "where somebody is signed in, %b is needed, want %b", got, want)
}

// A plan that depends only on the document is made once. Any other plan is made for each request.
func TestPlansAreKeptUnlessVariablesDecide(t *testing.T) {
	for text, kept := range map[string]bool{
		`query($id: ID!) { user(by: {id: $id}) { ...F } } fragment F on User { friends { nodes { id } } }`:                     true,
		`query($id: ID!, $yes: Boolean!) { user(by: {id: $id}) { friends { nodes { id bio @include(if: $yes) } } } }`:          false,
		`query($id: ID!, $yes: Boolean!) { user(by: {id: $id}) { ...F } } fragment F on User { ... @skip(if: $yes) { name } }`: false,
	} {
		doc, errs := gqlparser.LoadQueryWithRules(generated.NewExecutableSchema(generated.Config{}).Schema(), text, nil)
		must.That(t, errs == nil, "%v", errs)
		var memo selections.Memo
		vars := map[string]any{"id": "1", "yes": true}
		first, second := planOfDocument(t.Context(), doc, vars, &memo), planOfDocument(t.Context(), doc, vars, &memo)
		check.That(t, (first == second) == kept, "%s: kept is %v", text, first == second)
	}
}
