package sdl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// checked runs a program of check/ on texts of schemas, in its own folder, and returns what it prints.
func checked(t *testing.T, program []string, schemas ...string) string {
	t.Helper()
	testenv.Clients(t)
	testenv.NPM(t, "check")
	at := t.TempDir()
	shared, err := filepath.Abs("check/node_modules")
	must.OK(t, err)
	must.OK(t, os.Symlink(shared, filepath.Join(at, "node_modules")))
	for _, name := range []string{"package.json", "eslint.config.mjs", "diff.mjs", "accepted.json", "tada.mjs", "tsconfig.json", "page.ts"} {
		text, err := os.ReadFile(filepath.Join("check", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(at, name), text, 0o600)
		}
		must.OK(t, err)
	}
	for i, name := range []string{"schema.graphql", "released.txt"} {
		if i < len(schemas) {
			must.OK(t, os.WriteFile(filepath.Join(at, name), []byte(schemas[i]), 0o600))
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", program...)
	cmd.Dir = at
	out, err := cmd.CombinedOutput()
	_, ended := err.(*exec.ExitError)
	must.That(t, err == nil || ended, "%v", err)
	return string(out)
}

var (
	lint = []string{"node_modules/eslint/bin/eslint.js", "schema.graphql"}
	diff = []string{"diff.mjs", "released.txt", "schema.graphql"}
)

// TestTheSchemaKeepsTheRules of graphql-eslint, except those that check/eslint.config.mjs turns off with a reason.
func TestTheSchemaKeepsTheRules(t *testing.T) {
	_, text := published(t)
	check.Equal(t, "graphql-eslint", checked(t, lint, text), "")
	broken := text + "\ntype user_thing { id: String }\n"
	for _, rule := range []string{"naming-convention", "strict-id-in-types", "require-description", "no-unreachable-types"} {
		check.Has(t, rule, checked(t, lint, broken), rule)
	}
}

// TestTypesWithoutNull: with graphql-sock, gql.tada gives fields with @semanticNonNull types that are never null.
func TestTypesWithoutNull(t *testing.T) {
	_, text := published(t)
	check.Equal(t, "what gql.tada says", checked(t, []string{"tada.mjs"}, text), "")
	check.Has(t, "without the directive", checked(t, []string{"tada.mjs", "--nullable"}, text), "is possibly 'null'")
}

// TestNothingReleasedIsBroken: queries of clients of the last release are answered as before, except for the changes that
// check/accepted.json gives reasons for.
func TestNothingReleasedIsBroken(t *testing.T) {
	released := must.File(t, "released.graphql")
	text, err := sdl.Of(sdl.Without(generated.NewSchema(generated.Config{}).Schema(), sdl.Federation, sdl.Operators), "")
	must.OK(t, err)
	if found := checked(t, diff, text, string(released)); found != "" {
		t.Errorf("these changes break clients of the last release. If they have to, give check/accepted.json the reason and CHANGELOG.md a way to migrate:\n%s", found)
	}
	for change, want := range map[string][2]string{
		"FIELD_REMOVED User.followSuggestions": {"  followSuggestions(", "  suggestionsToFollow("},
		"FIELD_TYPE_CHANGED FollowError.code":  {"code: ErrorCode!", "code: String!"},
	} {
		broken := strings.Replace(text, want[0], want[1], 1)
		found := checked(t, diff, broken, string(released))
		check.That(t, broken != text && strings.Contains(found, change), "%q is not found: %s", change, found)
	}
}
