package db

import (
	"math/bits"

	"kith/storage/sqlstore/internal/db/prepared"
)

// A connection keeps statements prepared by their text (package prepared), and every length
// of an IN list is another text. So lists are filled up, by repeating their last id, to one
// of few lengths: those that are prepared have 28. An id that is named twice is found once.

// filledUp is the length of a list of n ids that is filled up: less than a quarter more.
func filledUp(n int) int {
	if n > prepared.Longest {
		return n
	}
	step := 1 << max(0, bits.Len(uint(n))-3)
	return (n + step - 1) &^ (step - 1)
}

// Filled is keys, filled up.
func Filled[T any](keys []T) []T {
	n := filledUp(len(keys))
	if n == len(keys) {
		return keys
	}
	all := make([]T, n)
	for i := copy(all, keys); i < n; i++ {
		all[i] = keys[len(keys)-1]
	}
	return all
}

// In is the end of a condition that ids are among its values, and the values, appended to
// other arguments.
func In[T ~int64](ids []T, after ...any) (text string, args []any) {
	n := filledUp(len(ids))
	args = make([]any, len(after), len(after)+n)
	copy(args, after)
	for i := range n {
		args = append(args, int64(ids[min(i, len(ids)-1)]))
	}
	return Marks(n) + ")", args
}
