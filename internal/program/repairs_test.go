package program_test

import (
	"strings"
	"testing"

	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestALoneGatewayHearsOfRepairs: without a Redis, a gateway that is alone keeps what it has read, and follows no binlog. What a command
// repairs, it reads again.
func TestALoneGatewayHearsOfRepairs(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	shard := database{"mysql", testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]}
	store := kithtest.Args("--store", location(shard), "--redundancy", "sync")
	run := func(args ...string) {
		t.Helper()
		kithtest.Ends(t, 0, kithtest.Args(args...), store)
	}
	edges := written(t, "edges.txt", "1 2\n3 2\n")
	run("import", edges)
	run("reconcile", "incremental")
	shard.exec(t, "DELETE FROM follower WHERE from_user_id = 1")
	g := kithtest.Start(t, store, kithtest.Args("--jwt-secret", secret))
	followers := func() string {
		return wholeAnswer(t, g, `{"query":"{ user(by: {id: 2}) { followers(first: 9) { nodes { id } } } }"}`, "Authorization", "Bearer "+adminToken(t), "Kith-Cost", "1")
	}
	g.Until(t, "answer from memory", func() bool {
		text := followers()
		must.That(t, !strings.Contains(text, `"id":"1"`), "nothing is wrong")
		return strings.Contains(text, `"statements":0`)
	})
	run("reconcile", "incremental", "--repair")
	g.Until(t, "show what is repaired", func() bool { return strings.Contains(followers(), `"id":"1"`) })
}
