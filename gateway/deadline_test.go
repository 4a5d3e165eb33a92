package gateway

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

type deadlineTestKey struct{}

func TestDeadlineStartsNoTimerUntilSomebodyWaits(t *testing.T) {
	parent := context.WithValue(t.Context(), deadlineTestKey{}, "kept")
	at := time.Now().Add(time.Hour)
	d := withDeadline(parent, at)
	defer d.end()
	if got, ok := d.Deadline(); !ok || !got.Equal(at) || d.Err() != nil || d.Value(deadlineTestKey{}) != "kept" {
		t.Errorf("the deadline is %v, %v; the context is done: %v", got, ok, d.Err())
	}
	if d.timed != nil {
		t.Error("a timer runs for nobody")
	}
	select {
	case <-d.Done():
		t.Error("it is done an hour early")
	default:
	}
	if d.timed == nil || d.Value(deadlineTestKey{}) != "kept" {
		t.Error("somebody waits, and no timer runs")
	}
}

func TestDeadlineEnds(t *testing.T) {
	past := func() time.Time { return time.Now().Add(-time.Second) }
	soon := func() time.Time { return time.Now().Add(time.Millisecond) }
	late := func() time.Time { return time.Now().Add(time.Hour) }
	for name, tt := range map[string]struct {
		at   time.Time
		wait bool              // first waits for Done
		do   func(d *deadline) // nil if time just passes
		want error
	}{
		"when its time is over":            {at: past(), want: context.DeadlineExceeded},
		"when its time runs out":           {at: soon(), wait: true, want: context.DeadlineExceeded},
		"when it is ended":                 {at: late(), do: (*deadline).end, want: context.Canceled},
		"when it is ended while one waits": {at: late(), wait: true, do: (*deadline).end, want: context.Canceled},
		"after its time, when it is ended": {at: past(), do: (*deadline).end, want: context.DeadlineExceeded},
	} {
		d := withDeadline(t.Context(), tt.at)
		var done <-chan struct{}
		if tt.wait {
			done = d.Done()
		}
		if tt.do != nil {
			tt.do(d)
		}
		if done == nil {
			if err := d.Err(); !errors.Is(err, tt.want) {
				t.Errorf("%s: its error is %v, want %v", name, err, tt.want)
			}
			done = d.Done()
		}
		<-done
		if err := d.Err(); !errors.Is(err, tt.want) {
			t.Errorf("%s: its error is %v, want %v", name, err, tt.want)
		}
		d.end()
	}
}

func TestDeadlineEndsWithItsParent(t *testing.T) {
	for _, waits := range []bool{false, true} {
		gone := errors.New("gone")
		parent, cancel := context.WithCancelCause(t.Context())
		d := withDeadline(parent, time.Now().Add(time.Hour))
		if waits {
			_ = d.Done()
		}
		cancel(gone)
		if !errors.Is(d.Err(), context.Canceled) || context.Cause(d) != gone {
			t.Errorf("waiting %v: the error is %v, the cause %v", waits, d.Err(), context.Cause(d))
		}
		d.end()
	}
	parent, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sooner, _ := parent.Deadline()
	d := withDeadline(parent, time.Now().Add(time.Hour))
	defer d.end()
	if at, _ := d.Deadline(); !at.Equal(sooner) {
		t.Errorf("the deadline is %v, the parent's %v", at, sooner)
	}
}

// Contexts that drivers derive from the request's context end with it, without a goroutine each.
func TestContextsMadeOfADeadlineEndWithIt(t *testing.T) {
	d := withDeadline(t.Context(), time.Now().Add(time.Hour))
	before := runtime.NumGoroutine()
	var children []context.Context
	for range 50 {
		child, cancel := context.WithCancel(context.WithValue(d, deadlineTestKey{}, 1))
		defer cancel()
		children = append(children, child)
	}
	if more := runtime.NumGoroutine() - before; more > 10 {
		t.Errorf("50 contexts made %d goroutines", more)
	}
	d.end()
	for _, child := range children {
		<-child.Done()
		if !errors.Is(child.Err(), context.Canceled) {
			t.Fatal(child.Err())
		}
	}
}
