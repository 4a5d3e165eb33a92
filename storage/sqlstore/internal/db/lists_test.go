package db

import (
	"slices"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

func TestListsAreMadeLonger(t *testing.T) {
	for one, three := range map[string]string{
		"a = ?":                                 "a = ?",
		"a IN (?) AND b = ?":                    "a IN (?,?,?) AND b = ?",
		"a = ? AND b IN (?)":                    "a = ? AND b IN (?,?,?)",
		"a IN (?) UNION ALL b IN (?)":           "a IN (?,?,?) UNION ALL b IN (?,?,?)",
		"(a, b) IN ((?, ?)) AND c = 1":          "(a, b) IN ((?, ?),(?, ?),(?, ?)) AND c = 1",
		"VALUES (?, ?, ?) ON CONFLICT (a)":      "VALUES (?, ?, ?),(?, ?, ?),(?, ?, ?) ON CONFLICT (a)",
		"VALUES (?) ON DUPLICATE a = VALUES(a)": "VALUES (?),(?),(?) ON DUPLICATE a = VALUES(a)",
		"FROM (SELECT ? AS a, ? AS b) wanted":   "FROM (SELECT ? AS a, ? AS b UNION ALL SELECT ?,? UNION ALL SELECT ?,?) wanted",
		"VALUES (1, ?)":                         "VALUES (1, ?)",
	} {
		check.Equal(t, one, Listed(one, 3), three)
		check.Equal(t, one, Listed(one, 1), one)
	}
}

func TestListsAreFilledUpToFewLengths(t *testing.T) {
	lengths := map[int]bool{}
	for n := 1; n <= 900; n++ {
		ids := make([]storage.UserID, n)
		for i := range ids {
			ids[i] = storage.UserID(i + 1)
		}
		all := Filled(ids)
		full := len(all)
		check.That(t, full >= n && full <= n+n/4 && (n <= 256 || full == n), "%d ids are filled up to %d", n, full)
		if n <= 256 {
			lengths[full] = true
		}
		check.That(t, slices.Equal(all[:n], ids) && all[n-1] == ids[n-1] && all[full-1] == ids[n-1], "%d ids, filled up, are %v", n, all)
		text, args := In("IN (?)", ids, "first")
		check.That(t, len(args) == full+1 && args[0] == "first" && args[full] == int64(n) && len(text) == len("IN ()")+2*full-1, "%d ids: %q, %v", n, text, args)
	}
	check.Equal(t, "lengths up to 256", len(lengths), 28)
}
