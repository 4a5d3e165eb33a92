package bench

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var odd, even []time.Duration
	for i := range 100 {
		if ms := time.Duration(i+1) * time.Millisecond; i%2 == 0 {
			odd = append(odd, ms)
		} else {
			even = append(even, ms)
		}
	}
	hundred := newLatencies(even, odd)
	for _, c := range []struct {
		of   Latencies
		p    float64
		want time.Duration
	}{
		{hundred, 50, 50 * time.Millisecond},
		{hundred, 99, 99 * time.Millisecond},
		{hundred, 99.5, 100 * time.Millisecond},
		{hundred, 100, 100 * time.Millisecond},
		{hundred, 0, time.Millisecond},
		{Latencies{1, 2, 3}, 50, 2},
		{Latencies{7}, 99, 7},
		{nil, 50, 0},
	} {
		if got := c.of.Percentile(c.p); got != c.want {
			t.Errorf("percentile %v of %d samples is %v, want %v", c.p, len(c.of), got, c.want)
		}
	}
}

func TestWhatTookLonger(t *testing.T) {
	l := newLatencies([]time.Duration{3, 1}, []time.Duration{2, 2, 9})
	for than, want := range map[time.Duration]int{0: 5, 1: 4, 2: 2, 8: 1, 9: 0} {
		if got := l.Beyond(than); got != want {
			t.Errorf("%d took longer than %d, want %d", got, than, want)
		}
	}
	if got := l.Total(); got != 17 {
		t.Errorf("together they took %d, want 17", got)
	}
	if n := Latencies(nil).Beyond(0); n != 0 {
		t.Errorf("%d of none took longer", n)
	}
}
