package program_test

import (
	"strings"
	"testing"

	"kith/internal/kithtest"
)

// kith token makes tokens that gateways with the same secret accept, and prints nothing else.
func TestTokenCommand(t *testing.T) {
	t.Parallel()
	made := func(args ...string) string {
		t.Helper()
		end := kithtest.Run(t, kithtest.Args(append([]string{"token", "--jwt-secret", secret}, args...)...))
		if end.Code != 0 || end.Stderr != "" || strings.Count(end.Stdout, "\n") != 1 {
			t.Fatalf("%v: %+v", args, end)
		}
		return "Bearer " + strings.TrimSpace(end.Stdout)
	}
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1), "--jwt-secret", secret))
	const operators, viewer = `{"query":"{ __type(name: \"Mutation\") { fields { name } } }"}`, `{"query":"{ viewer { user { id } } }"}`
	if answer := wholeAnswer(t, g, operators, "Authorization", made("--scope", "admin", "--for", "5m")); !strings.Contains(answer, "createUser") {
		t.Errorf("with the scope admin: %s", answer)
	}
	if answer := wholeAnswer(t, g, operators, "Authorization", made("--user=7")); strings.Contains(answer, "createUser") {
		t.Errorf("without a scope: %s", answer)
	}
	if answer := wholeAnswer(t, g, viewer, "Authorization", made("--user=7", "--for=1d")); !strings.Contains(answer, `"id":"7"`) {
		t.Errorf("of user 7: %s", answer)
	}
	if answer := wholeAnswer(t, g, viewer, "Authorization", made("--scope=act-as"), "Kith-Viewer", "9"); !strings.Contains(answer, `"id":"9"`) {
		t.Errorf("for user 9: %s", answer)
	}
	for args, want := range map[string]string{
		"--scope admin": "--jwt-secret (KITH_JWT_SECRET): the secret of the gateways is missing", "": "write --scope admin", "--user=-1": "negative",
	} {
		if end := kithtest.Run(t, kithtest.Args(append([]string{"token"}, strings.Fields(args)...)...)); end.Code != misused || end.Stdout != "" || !strings.Contains(end.Stderr, want) {
			t.Errorf("%q: %+v", args, end)
		}
	}
}
