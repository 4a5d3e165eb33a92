package sim

import (
	"fmt"
	"time"

	"kith/cluster"
	"kith/storage"
)

// mostLogged is how long a commit may be in the log of its server before others can read it: MySQL and MariaDB log it first, and then it waits
// for the disk or for a replica.
const mostLogged = 300 * time.Millisecond

// logsFirst reports whether a write in the databases of some users is in the log before it can be read, and in which.
func (h *handle) logsFirst(of []storage.UserID, what ...any) (shard int, is bool) {
	if h.of.Redundancy != cluster.Binlog || len(of) == 0 || h.of.chance("logged", h.of.name, fmt.Sprint(what...), time.Since(h.of.began)) > 0.1 {
		return 0, false
	}
	shard = h.ShardOf(of[0])
	for _, id := range of {
		if h.ShardOf(id) != shard {
			return 0, false
		}
	}
	return shard, h.of.alone(func() { h.of.executing++ })
}

// logFirst makes a write that is in the log at once, and in the tables later. Until then nothing else is written there.
func (h *handle) logFirst(shard int, write func()) {
	w := h.of
	hide := h.Store.Backup(shard)
	write()
	show := h.Store.Backup(shard)
	w.history.mu.Lock()
	w.history.logged[shard] = logged{show, hide}
	w.history.mu.Unlock()
	hide()
	sum := w.hash("logged", h.of.name, time.Since(w.began))
	time.Sleep(1 + time.Duration(fraction(sum)*fraction(sum)*float64(mostLogged)))
	show()
	w.history.mu.Lock()
	delete(w.history.logged, shard)
	w.history.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.executing--
	w.shown = time.Now()
}

// logged is what shows a transaction that is in the log only, and hides it again.
type logged struct{ show, hide func() }

// isLogging reports whether a shard has one.
func (h *history) isLogging(shard int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, is := h.logged[shard]
	return is || shard == anyShard && len(h.logged) > 0
}

// awaitLogged waits until all that is in the log of a shard can be read.
func (h *history) awaitLogged(shard int) {
	for h.isLogging(shard) {
		time.Sleep(time.Millisecond)
	}
}
