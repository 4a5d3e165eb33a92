package accounts

import (
	"sync"
	"time"

	"kith/storage"
)

// PasswordTimes are the users who have ever changed their passwords, and the times of the last
// changes, so that older tokens are refused without a look-up. Every gateway keeps them in memory,
// some 40 bytes each, and learns of changes together with those of states: see [HiddenUsers].
// PasswordTimes implements [kith/accounts/identity.PasswordTimes].
type PasswordTimes struct {
	mu      sync.RWMutex
	at      map[storage.UserID]storage.Micros
	again   map[storage.UserID]storage.Micros // those noted since a shard was restored, while everything is read again; else nil
	watches map[storage.UserID]map[*watch]struct{}
}

// watch is a connection that ends when its user's password changes.
type watch struct {
	since storage.Micros
	end   func()
}

// endAfter is how long a connection has left when its token has ended: the answer to the change
// itself may still be being sent over it.
const endAfter = time.Second

// ChangedAt is when a user last changed the password; 0: never, as far as is known.
func (p *PasswordTimes) ChangedAt(id storage.UserID) storage.Micros {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.at[id]
}

// Watch calls end, once and soon, if a user's password changes or has changed after a
// time. The function that it returns cancels that.
func (p *PasswordTimes) Watch(id storage.UserID, since storage.Micros, end func()) (callOff func()) {
	w := &watch{since, end}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at[id] > since {
		time.AfterFunc(endAfter, end)
		return func() {}
	}
	if p.watches[id] == nil {
		p.watches[id] = map[*watch]struct{}{}
	}
	p.watches[id][w] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.drop(id, w)
	}
}

// drop forgets a watch. The lock is held.
func (p *PasswordTimes) drop(id storage.UserID, w *watch) {
	delete(p.watches[id], w)
	if len(p.watches[id]) == 0 {
		delete(p.watches, id)
	}
}

// readAgain notes that everything is read again, because a shard was restored.
func (p *PasswordTimes) readAgain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = map[storage.UserID]storage.Micros{}
}

// wasRead forgets changes that were lost with the shard: they would end the tokens of everybody who signs in from now on.
func (p *PasswordTimes) wasRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.again = p.again, nil
}

// Note records that a user has changed the password. Times only rise, unless a shard is restored: an older time, which a
// refresh may read again, changes nothing.
func (p *PasswordTimes) Note(id storage.UserID, at storage.Micros) {
	p.mu.RLock()
	known := at == 0 || p.again == nil && at <= p.at[id]
	p.mu.RUnlock()
	if known {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.again != nil {
		p.again[id] = max(p.again[id], at)
	}
	if at <= p.at[id] {
		return
	}
	p.at[id] = at
	for w := range p.watches[id] {
		if w.since < at {
			time.AfterFunc(endAfter, w.end)
			p.drop(id, w)
		}
	}
}
