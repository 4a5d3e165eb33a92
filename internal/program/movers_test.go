package program_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// A second mover is told that another one is at work. Once the first one stands still for longer than its lease, the second one
// goes on with the move, and the first one ends when it is let go.
func TestAMoverThatStandsStillIsOvertaken(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		testenv.NotOn(t, "a store there is one shard", "tidb")
		shards := make(t, 2)
		settings := kithtest.Args("--store", location(shards[0]), "--redundancy", "sync")
		run := func(code int, say string, args ...string) {
			t.Helper()
			end := kithtest.Run(t, kithtest.Args(args...), settings)
			if code >= 0 && end.Code != code || !strings.Contains(end.Stdout+end.Stderr, say) {
				t.Fatalf("kith %v ended with %d, want %q\n%s%s", args, end.Code, say, end.Stdout, end.Stderr)
			}
		}
		run(0, "", "migrate")
		run(0, "is shard 1", "shards", "add", plain(shards[1]))
		first := kithtest.Launch(t, kithtest.Args("shards", "move", "--from", "0", "--to", "1", "--buckets", "512-1023", "--keep", "10m"), settings)
		first.Until(t, "the move is decided", func() bool { return shards[0].text(t, "SELECT COUNT(*) FROM kith_buckets WHERE state = 3") == "1" })
		run(0, "512 buckets: 0–511\n", "shards")
		for _, args := range [][]string{
			{"move", "--from", "0", "--to", "1", "--buckets", "0-99"}, {"split", "--from", "0", "--to", "1"}, {"resume"}, {"abort"},
		} {
			run(1, "another kith shards is at work", append([]string{"shards"}, args...)...)
		}
		run(-1, "buckets 512–1023 are being moved", "doctor")
		leased := func() string { return shards[0].text(t, "SELECT leased_until FROM kith_leases WHERE kind = 'shards'") }
		last := leased()
		first.Until(t, "its lease is taken once more", func() bool { return leased() != last })
		first.Signal(syscall.SIGSTOP) // not within that transaction, which keeps the others out for 75 s, and on SQLite until it goes on
		for began := time.Now(); ; kithtest.Pause(began) {
			end := kithtest.Run(t, kithtest.Args("shards", "move", "--from", "0", "--to", "1", "--buckets", "0-99"), settings)
			if end.Code == 1 && strings.Contains(end.Stderr, "begun before: buckets 512–1023") {
				break
			}
			must.That(t, time.Since(began) < 2*time.Minute, "no other mover is let in: %s%s", end.Stdout, end.Stderr)
		}
		run(0, "buckets 512–1023", "shards", "resume", "--keep", "2s")
		first.Signal(syscall.SIGCONT)
		first.Wait(t).Fails(t, "the first mover", 1, "stood still")
		run(0, "nothing is being moved", "shards", "resume")
	})
}
