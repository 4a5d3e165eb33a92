package binlog_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
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
	var base string
	must.OK(t, server.Open(t, "").QueryRow("SELECT @@log_bin_basename").Scan(&base))
	all := binlogs(t, server)
	server.Kill(t)
	file, err := os.OpenFile(filepath.Join(filepath.Dir(base), all[len(all)-1]), os.O_RDWR|os.O_APPEND, 0)
	must.OK(t, err)
	defer file.Close()
	event := make([]byte, 100)
	_, err = file.ReadAt(event[:19], 4) // the header of the first event
	must.OK(t, err)
	binary.LittleEndian.PutUint32(event[9:], uint32(len(event))) // its length
	_, err = file.Write(event[:written])
	must.OK(t, err)
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
