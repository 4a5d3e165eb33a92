package bench

import (
	"slices"
	"time"
)

// register is a value of which the mix knows what it has written to it, and when. What it held at first is not known.
type register[V comparable] struct{ writes []*write[V] }

// write is one of these.
type write[V comparable] struct {
	value   V
	gateway int
	begun   time.Time
	ended   time.Time // zero: it has not ended, or failed, so that nobody knows whether it has happened
}

// reading is when an answer was asked for, and of whom.
type reading struct {
	gateway int
	began   time.Time
	late    time.Duration // after what time at most another gateway shows a write
}

// forgotten is after what time no answer is under way that may show what was overwritten before.
const forgotten = time.Minute

// begin notes that a value is being written.
func (r *register[V]) begin(v V, by reading) *write[V] {
	late := reading{began: by.began.Add(-forgotten)}
	r.writes = slices.DeleteFunc(r.writes, func(w *write[V]) bool { return r.isOver(w, late, nil) })
	w := &write[V]{value: v, gateway: by.gateway, begun: by.began}
	r.writes = append(r.writes, w)
	return w
}

// mayBe reports whether an answer may show a value: that of a write, or what was there before all of them, unless another write began after
// it had ended, and was to be seen when the answer was asked for. What is seen in the answer to a write is own.
func (r *register[V]) mayBe(v V, by reading, own *write[V]) bool {
	if r.isOver(&write[V]{ended: time.Unix(0, 0)}, by, own) {
		return slices.ContainsFunc(r.writes, func(w *write[V]) bool { return w.value == v && !r.isOver(w, by, own) })
	}
	return true
}

// isOver reports whether what was written may be seen no more.
func (r *register[V]) isOver(w *write[V], by reading, own *write[V]) bool {
	return !w.ended.IsZero() && slices.ContainsFunc(r.writes, func(x *write[V]) bool {
		late := by.late
		if x.gateway == by.gateway {
			late = 0
		}
		seen := x == own || !x.ended.IsZero() && x.ended.Add(late).Before(by.began)
		return seen && x.begun.After(w.ended)
	})
}
