package db

import (
	"math/bits"
	"slices"
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

// Filled is keys, filled up: less than a quarter more.
func Filled[T any](keys []T) []T {
	n := len(keys)
	if n > prepared.Longest {
		return keys
	}
	step := 1 << max(0, bits.Len(uint(n))-3)
	more := -n & (step - 1)
	return append(slices.Clip(keys), slices.Repeat(keys[max(0, n-1):], more)...)
}

// In is a statement whose one list has these ids, filled up, and its arguments: those before
// the list, and the ids.
func In[T ~int64](text string, ids []T, before ...any) (string, []any) {
	ids = Filled(ids)
	return Listed(text, len(ids)), slices.Concat(before, Arguments(ids))
}
