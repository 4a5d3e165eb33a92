package program_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// asked is a request under way.
type asked struct{ answer chan answered }

// answered is its answer.
type answered struct {
	kithtest.Response
	err error
}

// ask sends a query, and returns when the gateway works on it.
func ask(t *testing.T, g *kithtest.Gateway, query string) asked {
	t.Helper()
	a := asked{make(chan answered, 1)}
	go func() {
		answer, err := g.Ask(query, nil)
		a.answer <- answered{answer, err}
	}()
	g.Until(t, "a request under way", func() bool {
		if len(a.answer) > 0 {
			t.Fatalf("the answer came before anything could happen: %+v", <-a.answer)
		}
		return strings.Contains(g.Metrics(t), "kith_graphql_requests_in_flight 1\n")
	})
	return a
}

// isComplete waits for a complete answer.
func (a asked) isComplete(t *testing.T) {
	t.Helper()
	answer := <-a.answer
	check.That(t, answer.err == nil && answer.Status == 200 && len(answer.Errors) == 0 && !strings.Contains(string(answer.Data), "null"), "answered: %+v", answer)
}

// refusesConnections waits until nothing listens at the gateway's address.
func refusesConnections(t *testing.T, g *kithtest.Gateway) {
	t.Helper()
	g.Until(t, "refuse connections", func() bool {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(g.URL, "http://"), time.Second)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// frozen is a gateway with a small graph on its own database server, which is frozen, and a request
// that waits for that server.
func frozen(t *testing.T, options ...string) (*testenv.MariaDBServer, *kithtest.Gateway, asked) {
	t.Helper()
	server := testenv.MariaDB(t)
	store := "mysql:" + server.CreateDatabase(t, "kith")
	importFew(t, store)
	g := kithtest.Start(t, kithtest.Args("--statement-timeout=60s", "--request-timeout=60s", "--cache-bytes=0", "--store", store), kithtest.Args(options...))
	server.Freeze(t)
	return server, g, ask(t, g, `{ user(by: {id: "1"}) { handle } }`)
}

func TestInterruptLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	server, g, question := frozen(t)
	g.Signal(os.Interrupt)
	refusesConnections(t, g)
	check.That(t, !g.Ended(), "the gateway has ended with a request under way")
	server.Thaw(t)
	question.isComplete(t)
	endedWell(t, g.Wait(t))
}

func TestDrainTimeEndsRequests(t *testing.T) {
	t.Parallel()
	_, g, question := frozen(t, "--drain=300ms")
	began := time.Now()
	end := g.Interrupt(t)
	if took := time.Since(began); end.Code != 1 || end.Stderr != "kith: requests were cut off after 300ms (--drain): it took too long\n" || took > 15*time.Second {
		t.Errorf("after %s: %+v", took, end)
	}
	answer := <-question.answer
	check.That(t, answer.err != nil, "answered: %+v", answer)
}

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	_, g, _ := frozen(t, "--drain=10m")
	g.Signal(os.Interrupt)
	refusesConnections(t, g)
	// For a moment after the first signal, a second one counts as the same signal.
	g.Until(t, "end at once", func() bool {
		g.Signal(os.Interrupt)
		return g.Ended()
	})
	end := g.Wait(t)
	check.That(t, end.Code != 0, "%+v", end)
}

// TestInterruptLeavesSQLiteSound interrupts the program in the middle of a request that takes
// hundreds of statements.
func TestInterruptLeavesSQLiteSound(t *testing.T) {
	t.Parallel()
	file := demoSQLite(t, 1)[0]
	g := kithtest.Start(t, kithtest.Args("--max-cost=100000000", "--store", location(file)))
	question := ask(t, g, heavy())
	g.Signal(os.Interrupt)
	refusesConnections(t, g)
	question.isComplete(t)
	endedWell(t, g.Wait(t))
	sound(t, file)
	_, err := os.Stat(file.address + "-wal")
	check.That(t, err != nil, "the write-ahead log has not been folded into the file")
}

// heavy is a query with many suggestions, which takes some time.
func heavy() string {
	var ids strings.Builder
	for id := range 500 {
		fmt.Fprintf(&ids, ` "%d"`, id+1)
	}
	return `{ users(by: {ids: [` + ids.String() + `]}) { followSuggestions(first: 1) { edges { score } } } }`
}

// sound checks that SQLite finds nothing wrong with the files.
func sound(t *testing.T, files ...database) {
	t.Helper()
	for _, f := range files {
		check.Equal(t, f.address, f.text(t, "PRAGMA integrity_check"), "ok")
	}
}
