package faults_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
)

// happened is an event of a history: a write that was answered or not, or what somebody saw.
type happened struct {
	from, to time.Time
	what     string
}

// told writes the history of one edge or register into a file that stays when the test is over, in the order of time. It
// returns the file's path, which belongs into the failure that it explains.
func told(t testing.TB, of fmt.Stringer, events []happened) string {
	t.Helper()
	file, err := os.CreateTemp("", "kith-history-*.txt")
	must.OK(t, err)
	slices.SortStableFunc(events, func(a, b happened) int { return a.from.Compare(b.from) })
	var text strings.Builder
	fmt.Fprintf(&text, "%v, %s\n", of, t.Name())
	for _, e := range events {
		fmt.Fprintf(&text, "%s  +%v  %s\n", e.from.UTC().Format("15:04:05.000000"), e.to.Sub(e.from).Round(time.Microsecond), e.what)
	}
	_, err = file.WriteString(text.String())
	must.OK(t, err)
	must.OK(t, file.Close())
	return file.Name()
}

// notes takes the place of a test that fails.
type notes struct {
	testing.TB
	failures []string
}

func (n *notes) Helper() {}

func (n *notes) Errorf(format string, args ...any) {
	n.failures = append(n.failures, fmt.Sprintf(format, args...))
}

// oneHistory reads the history that the only failure names, and removes it.
func (n *notes) oneHistory(t *testing.T) (history string) {
	t.Helper()
	must.Equal(t, fmt.Sprintf("failures: %q", n.failures), len(n.failures), 1)
	path := regexp.MustCompile(`its history is in (\S+)`).FindStringSubmatch(n.failures[0])
	must.That(t, path != nil, "%q names no history", n.failures[0])
	text := must.File(t, path[1])
	must.OK(t, os.Remove(path[1]))
	return string(text)
}

// holdsInOrder checks that a history has some texts, one after another, a line each, and nothing else.
func holdsInOrder(t *testing.T, history string, wanted ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(history), "\n")[1:] // the first says whose it is
	must.Equal(t, "lines of "+history, len(lines), len(wanted))
	for i, want := range wanted {
		check.Has(t, fmt.Sprint("line ", i), lines[i], want)
	}
}

// TestWrongSightHasItsHistory plants a sight that is wrong among others. Its register's whole history is kept, and nothing
// of other registers.
func TestWrongSightHasItsHistory(t *testing.T) {
	j, r := newJournal(), register{followOf, 101, 1}
	at := func(ms int) time.Time { return time.UnixMilli(1_790_000_000_000 + int64(ms)) }
	write := func(value int64, from int) writing {
		return writing{value: value, sent: at(from), acked: at(from + 5), on: 1}
	}
	see := func(r register, value int64, from int) {
		j.saw(sight{register: r, value: value, began: at(from), ended: at(from + 2), by: 101, on: 1})
	}
	j.wrote(r, write(1, 0))
	j.wrote(register{nameOf, 101, 0}, write(7, 1))
	see(r, 1, 10)
	see(register{nameOf, 101, 0}, 7, 11)
	j.missed(r, write(0, 20), "UNAVAILABLE")
	j.wrote(r, write(0, 30))
	see(r, 0, 40)
	see(r, 1, 50) // the wrong one
	j.wrote(r, write(1, 60))

	n := &notes{TB: t}
	j.judge(n)
	history := n.oneHistory(t)
	holdsInOrder(t, history, "wrote 1", "saw 1", "did not write 0: UNAVAILABLE", "wrote 0", "saw 0", "saw 1", "wrote 1")
	check.That(t, strings.HasPrefix(history, "101 follows 1, "), "the history does not say whose it is:\n%s", history)
}

// TestDifferingEdgeHasItsHistory is the same for an edge whose rows differ although nobody was told that anything is missing.
func TestDifferingEdgeHasItsHistory(t *testing.T) {
	h, e, l := newHistory(), edge{3, 4}, &life{name: "gateway 1"}
	send := func(from int, field string, viewer, target, version int64, err error) {
		began := time.UnixMilli(1_790_000_000_000 + int64(from))
		r := result{operation: operation{field, viewer, []int64{target}}, by: l, began: began, ended: began.Add(time.Millisecond), err: err, done: err == nil}
		if version > 0 {
			r.changes = []changedEdge{{r.edges()[0], version}}
		}
		must.OK(t, r.note(h))
	}
	send(40, "follow", 3, 4, 12, nil)
	send(0, "follow", 3, 4, 10, nil)
	send(5, "follow", 3, 5, 11, nil) // of another edge
	send(10, "removeFollower", 4, 3, 11, nil)
	send(20, "follow", 3, 4, 0, errors.New("cut off"))
	send(25, "follow", 3, 4, 0, errNotSent)
	send(30, "unfollow", 3, 4, 0, nil)

	found := tables{forward: map[edge]row{e: {1, 12}, {3, 5}: {1, 11}}, inverse: map[edge]row{e: {1, 10}, {3, 5}: {1, 11}}}
	n := &notes{TB: t}
	h.explain(n, found, h.judge(n, found))
	holdsInOrder(t, n.oneHistory(t), "follow by 3 of [4] at gateway 1: done true, stale false,  , version 10", "removeFollower by 4 of [3]",
		"no answer: cut off", "no answer: not sent", "unfollow by 3 of [4]", "version 12")
}
