package binlog_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication/binlog"
	"kith/storage"
)

// crash kills a server while it writes an event of a transaction that is not committed: the newest binlog then
// ends within the event. MariaDB leaves it so (MySQL cuts it off when it starts again).
func crash(t *testing.T, server *testenv.MariaDBServer, written int) {
	t.Helper()
	file, err := os.OpenFile(killed(t, server), os.O_RDWR|os.O_APPEND, 0)
	must.OK(t, err)
	defer file.Close()
	event := make([]byte, 100)
	_, err = file.ReadAt(event[:19], 4) // the header of the first event
	must.OK(t, err)
	binary.LittleEndian.PutUint32(event[9:], uint32(len(event))) // its length
	_, err = file.Write(event[:written])
	must.OK(t, err)
}

// killed kills a server, and returns the path of its newest binlog.
func killed(t *testing.T, server *testenv.MariaDBServer) string {
	t.Helper()
	var base string
	must.OK(t, server.Open(t, "").QueryRow("SELECT @@log_bin_basename").Scan(&base))
	all := binlogs(t, server)
	server.Kill(t)
	return filepath.Join(filepath.Dir(base), all[len(all)-1])
}

// TestTheDiskWasFull: a transaction that is in the log in part and then, under the same GTID, as a whole, is read once. MariaDB leaves that behind
// when its disk was full while it wrote the log, and the commit was killed: what it could not write comes with the next commit, from the beginning.
func TestTheDiskWasFull(t *testing.T) {
	t.Parallel()
	testenv.NotOn(t, "only MariaDB's binlog is like this", "mysql", "tidb")
	w, server := newPrivateWorld(t)
	log := w.openReader(t)[0]
	w.replicate(t).await(t, binlog.Tailing)
	before := end(t, log)
	w.write(t, w.follow(1, 10))
	w.settle(t)
	file := killed(t, server)
	content, err := os.ReadFile(file)
	must.OK(t, err)
	const header, gtid = 19, 162
	length := func(at int) int { return int(binary.LittleEndian.Uint32(content[at+9:])) }
	last := 0
	for at := 4; at+header <= len(content); at += length(at) {
		if content[at+4] == gtid {
			last = at
		}
	}
	part := last + length(last)
	part += length(part)
	must.OK(t, os.WriteFile(file, slices.Concat(content[:part], content[last:]), 0))
	server.Restart(t)
	must.OKSoon(t, func() error { return w.tryWrite(w.follow(1, 20)) })
	w.settle(t)
	n := strings.Count(w.log.String(), "copying all edges")
	check.That(t, n == 1, "following was copied %d times:\n%s", n, w.log)
	changes, _, err := readTo(t, log, before)
	must.OK(t, err)
	check.That(t, len(changes) == 4, "%d changes were read, want both sides of two follows: %v", len(changes), changes)
}

// TestTheServerWasKilledWithinAnEvent: reading goes on in the next file, however much of the first had been read.
func TestTheServerWasKilledWithinAnEvent(t *testing.T) {
	t.Parallel()
	for _, written := range []int{1, 19, 50} {
		t.Run(fmt.Sprintf("%d bytes", written), func(t *testing.T) {
			t.Parallel()
			w, server := newPrivateWorld(t)
			log := w.openReader(t)[0]
			r := w.replicate(t)
			r.await(t, binlog.Tailing)
			positions := []string{end(t, log)}
			for i := range storage.UserID(3) {
				w.write(t, w.follow(1, 10+i))
				positions = append(positions, end(t, log))
			}
			crash(t, server, written)
			server.Restart(t)
			must.OKSoon(t, func() error { return w.tryWrite(w.follow(1, 20)) })
			w.settle(t)
			n := strings.Count(w.log.String(), "copying all edges")
			check.That(t, n == 1, "following was copied %d times:\n%s", n, w.log)
			for i, after := range positions {
				changes, _, err := readTo(t, log, after)
				check.That(t, err == nil, "after %d follows: %v", i, err)
				follows := 0
				for _, c := range changes {
					if c.Side == storage.Forward {
						follows++
					}
				}
				check.That(t, follows == 4-i, "after %d follows: %d follows were read, want %d", i, follows, 4-i)
			}
		})
	}
}
