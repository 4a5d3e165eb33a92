package faults_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
)

// register is a value that only one user writes: a name, whether it follows somebody, or whether it
// blocks somebody. Its values are numbers: those of names rise, those of edges are 0 and 1.
type register struct {
	kind  registerKind
	owner int64
	other int64 // the other user of an edge or a block
}

type registerKind byte

const (
	nameOf registerKind = iota
	followOf
	blockOf
)

func (r register) String() string {
	switch r.kind {
	case nameOf:
		return fmt.Sprintf("the name of %d", r.owner)
	case followOf:
		return fmt.Sprintf("%d follows %d", r.owner, r.other)
	default:
		return fmt.Sprintf("%d blocks %d", r.owner, r.other)
	}
}

// writing is a write of a register that was acknowledged.
type writing struct {
	value       int64
	sent, acked time.Time
	on          int // the gateway
}

// sight is what a user saw of a register.
type sight struct {
	register
	value        int64
	began, ended time.Time
	by           int64 // who looked
	on           int   // the gateway
	inverse      bool  // read from the inverse side, which may lag behind even for the writer
	promised     bool  // the consistency token of the last write was sent
}

// journal is everything that all clients wrote and saw.
type journal struct {
	mu     sync.Mutex
	writes map[register][]writing  // in the order of writing: each register has one writer
	failed map[register][]happened // writes that were refused or not answered
	sights []sight
}

func newJournal() *journal {
	return &journal{writes: map[register][]writing{}, failed: map[register][]happened{}}
}

func (j *journal) wrote(r register, w writing) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes[r] = append(j.writes[r], w)
}

func (j *journal) missed(r register, w writing, why any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed[r] = append(j.failed[r], happened{w.sent, w.acked, fmt.Sprintf("gateway %d did not write %d: %v", w.on, w.value, why)})
}

func (j *journal) saw(list ...sight) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sights = append(j.sights, list...)
}

// late is a sight of a value that had been overwritten before the question was sent.
type late struct {
	sight
	missed writing // the first write that the sight does not show
	by     time.Duration
}

func (l late) String() string {
	return fmt.Sprintf("%v: user %d saw %d on gateway %d, %v after %d had been acknowledged by gateway %d",
		l.register, l.sight.by, l.value, l.on, l.by.Round(time.Millisecond), l.missed.value, l.missed.on)
}

// judge sorts all sights. It fails for values that never existed, and for writers who do not see
// what they have written although that was promised. It returns the late sights, the latest first.
func (j *journal) judge(t testing.TB) (all []late) {
	t.Helper()
	broken := 0
	for _, s := range j.sights {
		writes := j.writes[s.register]
		shown := j.shown(s, writes)
		if shown == never {
			if broken++; broken <= 10 {
				t.Errorf("%v: user %d saw %d, which it never was; %s", s.register, s.by, s.value, j.story(t, s.register))
			}
			continue
		}
		rest := writes[shown+1:]
		if len(rest) == 0 || !rest[0].acked.Before(s.began) {
			continue
		}
		l := late{s, rest[0], s.began.Sub(rest[0].acked)}
		if s.by == s.owner && !s.inverse && (s.promised || slices.ContainsFunc(rest, func(w writing) bool { return w.on == s.on && w.acked.Before(s.began) })) {
			if broken++; broken <= 10 {
				t.Errorf("a writer does not see what it wrote (token: %v): %v; %s", s.promised, l, j.story(t, s.register))
			}
			continue
		}
		all = append(all, l)
	}
	check.Most(t, "sights that were wrong: of what never was, or of writers who did not see what they wrote", broken, 10)
	slices.SortFunc(all, func(a, b late) int { return int(b.by - a.by) })
	return all
}

// story writes down all writes of a register and all that was seen of it, and names the file.
func (j *journal) story(t testing.TB, r register) string {
	t.Helper()
	events := slices.Clone(j.failed[r])
	for _, w := range j.writes[r] {
		events = append(events, happened{w.sent, w.acked, fmt.Sprintf("gateway %d wrote %d", w.on, w.value)})
	}
	for _, s := range j.sights {
		if s.register == r {
			events = append(events, happened{s.began, s.ended, fmt.Sprintf("user %d saw %d on gateway %d (inverse side: %v, token: %v)", s.by, s.value, s.on, s.inverse, s.promised)})
		}
	}
	return "its history is in " + told(t, r, events)
}

// never is the index of a value that was never written.
const never = -2

// shown is the index of the write that a sight shows: the last possible one. -1 is the value before
// all writes.
func (j *journal) shown(s sight, writes []writing) int {
	for i, w := range slices.Backward(writes) {
		if w.value == s.value && !w.sent.After(s.ended) {
			return i
		}
	}
	if s.value == 0 {
		return -1
	}
	return never
}

// measured reports in a line how late sights were.
func measured(all []late, sights int) string {
	if len(all) == 0 {
		return fmt.Sprintf("%d sights, none late", sights)
	}
	at := func(share float64) time.Duration { // of all sights; those in time count as 0 late
		i := int(float64(sights) * (1 - share))
		if i >= len(all) {
			return 0
		}
		return all[i].by.Round(100 * time.Microsecond)
	}
	among := func(share float64) time.Duration {
		return all[int(float64(len(all)-1)*(1-share))].by.Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%d sights, %d late (p99 of all %v, p99.9 %v); of the late ones p50 %v, p99 %v, the latest %v",
		sights, len(all), at(0.99), at(0.999), among(0.5), among(0.99), all[0].by.Round(100*time.Microsecond))
}
