package program_test

import (
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// kith token makes tokens that gateways with the same secret accept, and prints nothing else.
func TestTokenCommand(t *testing.T) {
	t.Parallel()
	made := func(args ...string) string {
		t.Helper()
		end := kithtest.Run(t, kithtest.Args(append([]string{"token", "--jwt-secret", secret}, args...)...))
		must.That(t, end.Code == 0 && end.Stderr == "" && strings.Count(end.Stdout, "\n") == 1, "%v: %+v", args, end)
		return "Bearer " + strings.TrimSpace(end.Stdout)
	}
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1), "--jwt-secret", secret))
	const operators, viewer = `{"query":"{ __type(name: \"Mutation\") { fields { name } } }"}`, `{"query":"{ viewer { user { id } } }"}`
	check.Has(t, "with the scope admin", wholeAnswer(t, g, operators, "Authorization", made("--scope", "admin", "--for", "5m")), "createUser")
	check.Lacks(t, "without a scope", wholeAnswer(t, g, operators, "Authorization", made("--user=7")), "createUser")
	check.Has(t, "of user 7", wholeAnswer(t, g, viewer, "Authorization", made("--user=7", "--for=1d")), `"id":"7"`)
	check.Has(t, "for user 9", wholeAnswer(t, g, viewer, "Authorization", made("--scope=act-as"), "Kith-Viewer", "9"), `"id":"9"`)
	for args, want := range map[string]string{
		"--scope admin": "--jwt-secret (KITH_JWT_SECRET): the secret of the gateways is missing", "": "write --scope admin", "--user=-1": "negative",
		"--user 1 --demo 127.0.0.1:8080": "is no address such as", "--user 1 --demo localhost:8080": "is no address such as", "--user 2001 --demo " + g.URL: "2001 is no user of the demo",
	} {
		end := kithtest.Run(t, kithtest.Args(append([]string{"token"}, strings.Fields(args)...)...))
		check.That(t, end.Code == misused && end.Stdout == "" && strings.Contains(end.Stderr, want), "%q: %+v", args, end)
	}
}
