package bench

import (
	"slices"
	"time"
)

// Latencies are the times that answers took, ascending.
type Latencies []time.Duration

// newLatencies puts the samples of several connections together.
func newLatencies(samples ...[]time.Duration) Latencies {
	all := slices.Concat(samples...)
	slices.Sort(all)
	return all
}

// Percentile is the shortest time that p percent of all answers did not exceed
// (the nearest rank), 0 if there are no answers.
func (l Latencies) Percentile(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	rank := int(p / 100 * float64(len(l)))
	if float64(rank) < p/100*float64(len(l)) {
		rank++
	}
	return l[min(max(rank, 1), len(l))-1]
}

// Beyond is how many answers took longer than a time.
func (l Latencies) Beyond(time time.Duration) int {
	at, _ := slices.BinarySearch(l, time+1)
	return len(l) - at
}

// Total is the time that all answers took together.
func (l Latencies) Total() (total time.Duration) {
	for _, one := range l {
		total += one
	}
	return total
}
