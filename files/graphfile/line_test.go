package graphfile

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

func TestParseLine(t *testing.T) {
	day := storage.MicrosOf(time.Date(2024, 2, 29, 13, 14, 15, 0, time.UTC))
	untimed := func(from, to storage.UserID) Line { return Line{From: from, To: to} }
	timed := func(at storage.Micros) Line { return Line{From: 1, To: 2, Time: at, Timed: true} }
	tests := []struct {
		name, line string
		want       Line
		nothing    bool
		err        error
	}{
		{name: "blank between", line: "1 2\n", want: untimed(1, 2)},
		{name: "tab between", line: "1\t2\n", want: untimed(1, 2)},
		{name: "comma between", line: "1,2\n", want: untimed(1, 2)},
		{name: "many blanks", line: " \t 1 \t  2 \t\n", want: untimed(1, 2)},
		{name: "comma with blanks", line: "1 , 2\n", want: untimed(1, 2)},
		{name: "CRLF", line: "1 2\r\n", want: untimed(1, 2)},
		{name: "no newline at the end", line: "1 2", want: untimed(1, 2)},
		{name: "an empty time", line: "1,2,\n", want: untimed(1, 2)},
		{name: "comment behind", line: "1 2 # why\n", want: untimed(1, 2)},
		{name: "comment behind a time", line: "1 2 3 # why\n", want: timed(3e6)},
		{name: "self-follow is not the parser's business", line: "7 7\n", want: untimed(7, 7)},
		{name: "greatest id", line: "9223372036854775807 1\n", want: untimed(math.MaxInt64, 1)},

		{name: "empty", line: "", nothing: true},
		{name: "newline alone", line: "\n", nothing: true},
		{name: "blanks alone", line: " \t\r\n", nothing: true},
		{name: "comment", line: "# 1 2\n", nothing: true},
		{name: "indented comment", line: "  #1 2\n", nothing: true},

		{name: "seconds", line: "1 2 1709212455\n", want: timed(day)},
		{name: "seconds after a comma", line: "1,2,1709212455\n", want: timed(day)},
		{name: "zero seconds", line: "1 2 0\n", want: timed(0)},
		{name: "fraction", line: "1 2 1709212455.5\n", want: timed(day + 500_000)},
		{name: "fine fraction", line: "1 2 1709212455.1234569\n", want: timed(day + 123_456)},
		{name: "fraction finer than anything", line: "1 2 0." + strings.Repeat("0", 40) + "1\n", want: timed(0)},
		{name: "RFC 3339", line: "1 2 2024-02-29T13:14:15Z\n", want: timed(day)},
		{name: "RFC 3339 with commas", line: "1,2,2024-02-29T13:14:15Z\r\n", want: timed(day)},
		{name: "RFC 3339 in lower case", line: "1 2 2024-02-29t13:14:15z\n", want: timed(day)},
		{name: "RFC 3339 with an offset", line: "1 2 2024-02-29T15:14:15.25+02:00\n", want: timed(day + 250_000)},
		{name: "milliseconds", line: "1 2 1709212455123\n", want: timed(day + 123_000)},
		{name: "the first milliseconds", line: "1 2 253402300800\n", want: timed(253402300800e3)},
		{name: "the last whole seconds", line: "1 2 4102444799\n", want: timed(4102444799e6)},
		{name: "far seconds", line: "1 2 170000000000.0\n", want: timed(170000000000e6)},
		{name: "a day alone", line: "1 2 2024-02-29\n", want: timed(storage.MicrosOf(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)))},
		{name: "SQL's time", line: "1 2 2024-02-29 13:14:15\n", want: timed(day)},
		{name: "SQL's time with commas", line: "1,2,2024-02-29 13:14:15.25\r\n", want: timed(day + 250_000)},
		{name: "PostgreSQL's time", line: "1 2 2024-02-29 15:14:15.25+02\n", want: timed(day + 250_000)},
		{name: "PostgreSQL's time in quotes", line: "\"1\",\"2\",\"2024-02-29 07:44:15-05:30\"\n", want: timed(day)},
		{name: "SQL's time with an offset", line: "1 2 2024-02-29 13:14:15+00:00 # why\n", want: timed(day)},
		{name: "SQL's time with a Z", line: "1,2,2024-02-29 13:14:15z\n", want: timed(day)},
		{name: "SQL's time and a comment", line: "1 2 2024-02-29 13:14:15 # why\n", want: timed(day)},
		{name: "all quoted", line: "\"1\",\"2\",\"2024-02-29 13:14:15\"\n", want: timed(day)},
		{name: "quoted ids", line: "\"1\"\t\"2\"\n", want: untimed(1, 2)},
		{name: "the last time", line: "1 2 9999-12-31T23:59:59.999999Z\n", want: timed(maxTime)},

		{name: "one field", line: "1\n", err: ErrFields},
		{name: "one field and a comma", line: "1,\n", err: ErrFields},
		{name: "one field and a comment", line: "1 #2\n", err: ErrFields},
		{name: "four fields", line: "1 2 3 4\n", err: ErrFields},
		{name: "an empty fourth field", line: "1,2,3,\n", err: ErrFields},
		{name: "two commas", line: "1,,2\n", err: ErrFields},
		{name: "comma first", line: ",1,2\n", err: ErrFields},
		{name: "two empty fields behind", line: "1,2,,\n", err: ErrFields},
		{name: "no number", line: "a b\n", err: errID},
		{name: "number with a tail", line: "10abc 2\n", err: errID},
		{name: "comment glued to a field", line: "1 2#x\n", err: errID},
		{name: "negative", line: "-1 2\n", err: errID},
		{name: "plus", line: "+1 2\n", err: errID},
		{name: "leading zero", line: "01 2\n", err: errID},
		{name: "fraction as id", line: "1.0 2\n", err: errID},
		{name: "semicolon", line: "1;2\n", err: ErrFields},
		{name: "not ASCII", line: "１ ２\n", err: errID},
		{name: "no-break space", line: "1\u00a02 3\n", err: errID},
		{name: "NUL", line: "1\x002 3\n", err: errID},
		{name: "zero", line: "0 2\n", err: ErrIDRange},
		{name: "zero behind", line: "2 0\n", err: ErrIDRange},
		{name: "2^63", line: "9223372036854775808 1\n", err: ErrIDRange},
		{name: "2^64+1", line: "1 18446744073709551617\n", err: ErrIDRange},
		{name: "thirty digits", line: "1 " + strings.Repeat("9", 30) + "\n", err: ErrIDRange},

		{name: "no time", line: "1 2 soon\n", err: errTime},
		{name: "negative time", line: "1 2 -5\n", err: errTime},
		{name: "dot alone behind", line: "1 2 5.\n", err: errTime},
		{name: "dot first", line: "1 2 .5\n", err: errTime},
		{name: "two dots", line: "1 2 1.2.3\n", err: errTime},
		{name: "exponent", line: "1 2 1.7e9\n", err: errTime},
		{name: "leading zero in a time", line: "1 2 007\n", err: errTime},
		{name: "no such day", line: "1 2 2023-02-29T00:00:00Z\n", err: errTime},
		{name: "endless RFC 3339", line: "1 2 2024-02-29T13:14:15." + strings.Repeat("1", 90) + "Z\n", err: errTime},
		{name: "microseconds", line: "1 2 1709212455000000\n", err: errTimeUnit},
		{name: "seconds or milliseconds", line: "1 2 170000000000\n", err: errUnclear},
		{name: "the first unclear time", line: "1,2,4102444800\n", err: errUnclear},
		{name: "the last unclear time", line: "1,2,253402300799\n", err: errUnclear},
		{name: "no such offset", line: "1 2 2024-02-29 13:14:15+0a\n", err: errTime},
		{name: "an offset without a time", line: "1 2 2024-02-29 +00\n", err: errTime},
		{name: "no such time", line: "1 2 2024-02-29 25:00:00\n", err: errTime},
		{name: "a day and something", line: "1 2 2024-02-29 soon\n", err: errTime},
		{name: "a quote that does not end", line: "1 \"2\n", err: errID},
		{name: "a tail behind a quote", line: "\"1\"x 2\n", err: ErrFields},
		{name: "overflowing time", line: "1 2 99999999999999999999\n", err: errTimeUnit},
		{name: "before 1970", line: "1 2 1969-12-31T23:59:59Z\n", err: errTimeUnit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, found, err := ParseLine([]byte(tt.line))
			must.That(t, errors.Is(err, tt.err), "ParseLine(%q): error %v, want %v", tt.line, err, tt.err)
			want := tt.err == nil && !tt.nothing
			must.That(t, found == want, "ParseLine(%q): found %v, want %v", tt.line, found, want)
			check.That(t, !found || got == tt.want, "ParseLine(%q) = %+v, want %+v", tt.line, got, tt.want)
		})
	}
}

func TestParseLineDoesNotAllocate(t *testing.T) {
	lines := [][]byte{[]byte("12345 67890\n"), []byte("1,2,1709212455.25\n"), []byte("1 2 2024-02-29T13:14:15.5Z\n"), []byte("1 2 2024-02-29 13:14:15.5+00\n"), []byte("x y\n")}
	allocs := testing.AllocsPerRun(100, func() {
		for _, line := range lines {
			_, _, _ = ParseLine(line)
		}
	})
	check.That(t, allocs == 0, "%v allocations for %d lines, want none", allocs, len(lines))
}

// If the parser accepts a line, writing the parsed line results in a line of the same meaning.
func FuzzParseLine(f *testing.F) {
	for _, seed := range []string{"1 2\n", "1,2,3.5", "# x", "1\t2\t2024-02-29T13:14:15.25+02:00\r\n", "9223372036854775807 1 0", "-1 2", "1,,2", "1 2 170000000000.0", "1 2 2024-02-29 13:14:15-05"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		p, found, err := ParseLine(line)
		must.That(t, !found || err == nil, "%q: found with the error %v", line, err)
		if !found {
			return
		}
		must.That(t, p.From >= 1 && p.To >= 1 && p.Time >= 0 && p.Time <= maxTime, "%q: %+v is out of range", line, p)
		must.That(t, bytes.Contains(line, []byte(p.From.String())) && bytes.Contains(line, []byte(p.To.String())), "%q: the ids of %+v are not in it", line, p)
		again := p.From.String() + " " + p.To.String()
		if p.Timed {
			again += " " + p.Time.Time().Format(time.RFC3339Nano)
		}
		q, _, err := ParseLine([]byte(again))
		must.That(t, err == nil && q == p, "%q is %+v, but %q is %+v (%v)", line, p, again, q, err)
	})
}

// The first line of a CSV of edges may name its columns, and says which of the two is from. A line that could be an edge with a mistake is
// no header.
func TestHeaderOfAnEdgeList(t *testing.T) {
	const none, straight, reversed, wrong = "none", "from,to", "to,from", "wrong"
	for line, want := range map[string]string{
		"from,to": straight, "From,To\r": straight, `"source","target"`: straight, "follower_id,followee-id,created_at": straight, "from\tto": straight, "from, to": straight,
		"follower,user": straight, "user_id,followedUserId": straight, "FromNodeId ToNodeId": straight, "user,following,followedAt": straight, "blocker,blocked": straight,
		"id,target_id,timestamp": straight,
		"to,from":                reversed, "followee_id,follower_id": reversed, "target,source": reversed, "user,follower": reversed, "USER_ID,FOLLOWER_ID,TIME": reversed,
		"to_user_id\tfrom_user_id": reversed, "dst,src": reversed, "followed,user": reversed, "blocked_id,id": reversed,
		"a,b": straight + " a b", "user,user_id": straight + " user user_id", "from,to,weight": straight + " weight", "user,friend": straight + " user friend",
		"friend,follower": reversed + " friend", "total,fromage": straight + " total fromage",
		"from,from": wrong, "follower,source": wrong, "to,user,from": wrong, "time,from,to": wrong, "from,created_at": wrong, "id,from,to": wrong,
		"": none, "from": none, "from,to,time,weight": none, "1,2": none, "1,b": none, "a,2": none, "12a,3": none, "from,to,1700000000": none,
		"from,,to": none, "# from to": none, "from;to": none, "von,zu,größe": none,
	} {
		h, ok, err := ParseEdgeHeader([]byte(line))
		got := none
		switch {
		case err != nil && errors.Is(err, ErrHeader):
			got = wrong
		case ok:
			got = strings.Join(append([]string{map[bool]string{false: straight, true: reversed}[h.Reversed]}, h.Unknown...), " ")
		}
		check.Equal(t, line, got, want)
	}
}
