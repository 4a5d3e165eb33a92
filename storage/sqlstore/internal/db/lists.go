package db

import (
	"math/bits"
	"strings"

	"kith/storage/sqlstore/internal/db/prepared"
)

// A statement with a list in it is written for a list of one, so that it can be run as it is
// written. Listed makes the list longer:
//
//	IN (?)                         IN (?,?)
//	IN ((?, ?))                    IN ((?, ?),(?, ?))
//	VALUES (?, ?)                  VALUES (?, ?),(?, ?)
//	(SELECT ? AS a, ? AS b)        (SELECT ? AS a, ? AS b UNION ALL SELECT ?,?)

// Listed is a statement with n members in each of its lists.
func Listed(text string, n int) string {
	if n == 1 {
		return text
	}
	var whole strings.Builder
	for {
		end, more := firstList(text)
		if end < 0 {
			whole.WriteString(text)
			return whole.String()
		}
		whole.WriteString(text[:end])
		for range n - 1 {
			whole.WriteString(more)
		}
		text = text[end:]
	}
}

// listsBegin is how lists begin, the first member with them from skip on.
var listsBegin = [...]struct {
	text string
	skip int
}{{"IN (?", len("IN (")}, {"IN ((?", len("IN (")}, {"VALUES (?", len("VALUES ")}, {"(SELECT ?", len("(")}}

// firstList finds where the first member of the first list ends, and what every other one
// adds behind it. end is -1 where there is no list.
func firstList(text string) (end int, more string) {
	first, member := -1, 0
	for _, l := range listsBegin {
		if at := strings.Index(text, l.text); at >= 0 && (first < 0 || at < first) {
			first, member = at, at+l.skip
		}
	}
	if first < 0 {
		return -1, ""
	}
	end = member + strings.IndexByte(text[member:], ')')
	switch text[member] {
	case '(':
		end++
		return end, "," + text[member:end]
	case 'S':
		return end, " UNION ALL SELECT " + Marks(strings.Count(text[member:end], "?"))
	}
	return end, "," + text[member:end]
}

// Marks returns n placeholders, `?,?,…`.
func Marks(n int) string {
	return strings.Repeat("?,", n-1) + "?"
}

// A connection keeps statements prepared by their text (package prepared), and every length
// of a list is another text. So lists are filled up, by repeating their last id, to one
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

// In is a statement whose one list has these ids, filled up, and its arguments: those before
// the list, and the ids.
func In[T ~int64](text string, ids []T, before ...any) (string, []any) {
	n := filledUp(len(ids))
	args := make([]any, len(before), len(before)+n)
	copy(args, before)
	for i := range n {
		args = append(args, int64(ids[min(i, len(ids)-1)]))
	}
	return Listed(text, n), args
}
