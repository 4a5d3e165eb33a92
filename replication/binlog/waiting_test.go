package binlog

import (
	"testing"
	"testing/synctest"

	"kith/storage"
)

// Large transactions, as of an import, do not wait many at a time: each of them takes megabytes. One that is larger than all that may wait
// passes as well.
func TestLargeTransactionsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := []int{mostRows / 2, mostRows / 2, 1, mostRows + 1, 1}
		added, taken, take := 0, 0, make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- onceVisible(t.Context(), nil, func(*transaction) { <-take; taken++ }, func(add func(*transaction) error) error {
				for _, rows := range large {
					if err := add(&transaction{rows: make([]storage.Row, rows)}); err != nil {
						return err
					}
					added++
				}
				return nil
			})
		}()
		for i, want := range []int{2, 3, 3, 4, 5} {
			if synctest.Wait(); added != want {
				t.Errorf("%d transactions wait when %d have passed, want %d", added-i, i, want-i)
			}
			take <- struct{}{}
		}
		if err := <-ended; err != nil || taken != len(large) {
			t.Errorf("%d have passed: %v", taken, err)
		}
	})
}
