package growth

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
)

// WriteTable writes months as Markdown, one a line.
func WriteTable(w io.Writer, months []Month) {
	columns := []string{
		"month", "users", "follows", "`following`", "`follower`", "other tables", "requests/s", "follows and unfollows/s",
		"gateways", "keys in memory", "memory of one", "servers", "because of", "shards", "replicated/s and server", "connections a server",
		"more servers in", "rows to move", "which takes",
	}
	writeRow(w, columns)
	fmt.Fprintln(w, "|"+strings.Repeat("---:|", len(columns)))
	for _, m := range months {
		connections := number(m.Connections)
		if m.Proxy {
			connections += ", proxy"
		}
		row := []string{
			fmt.Sprint(m.Month), short(m.Users), short(m.Follows), bytes(m.FollowingBytes), bytes(m.FollowerBytes), bytes(m.OtherBytes),
			number(m.Requests), number(m.Changes), number(m.Gateways), fmt.Sprintf("%.0f %%", 100*m.HitRate), bytes(m.Kept),
			number(m.Servers), m.Because, number(m.Shards), number(m.Replicated), connections, "", "", "",
		}
		if m.SplitIn >= 0 {
			copy(row[len(row)-3:], []string{days(m.SplitIn), short(m.MoveRows), days(m.MoveTakes)})
		}
		writeRow(w, row)
	}
}

func writeRow(w io.Writer, cells []string) { fmt.Fprintln(w, "| "+strings.Join(cells, " | ")+" |") }

// short spells a number with three digits: 12.3 M.
func short(n float64) string {
	value, prefix := humanize.ComputeSI(n)
	digits := max(0, 2-int(math.Floor(math.Log10(math.Max(1, value)))))
	return strings.TrimSpace(fmt.Sprintf("%.*f %s", digits, value, prefix))
}

func bytes(n float64) string {
	if n < 1e3 {
		return fmt.Sprintf("%.0f B", n)
	}
	return short(n) + "B"
}

func number(n float64) string { return humanize.Comma(int64(math.Round(n))) }

// days spells a time: hours if it is short.
func days(n float64) string {
	switch {
	case n < 1:
		return fmt.Sprintf("%.1f h", 24*n)
	case n < 10:
		return fmt.Sprintf("%.1f days", n)
	}
	return number(n) + " days"
}
