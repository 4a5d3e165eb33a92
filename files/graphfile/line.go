// Package graphfile is the form of the files that an import reads and an export writes: lines of
// edge lists, records of users files, and the manifest of an export.
package graphfile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"kith/storage"
)

// Why a line is malformed. They are values of their own, so that a file full of
// bad lines costs no allocation a line.
var (
	ErrFields   = errors.New("want `from to [time]`")
	errID       = errors.New("an id must be plain decimal digits without leading zeros")
	ErrIDRange  = errors.New("an id must be between 1 and 4611686018427387903")
	errTime     = errors.New("a time must be Unix seconds or milliseconds, RFC 3339, or SQL's `2006-01-02 15:04:05`")
	errTimeUnit = errors.New("a time must lie between 1970 and 9999; Unix times are in seconds or milliseconds")
	errUnclear  = errors.New("a time without a fraction may be seconds after 2099 or milliseconds before 1978: write it as RFC 3339")
	ErrLong     = errors.New("the line is too long")

	// ErrLongRecord ends an import: where the next record begins is not known.
	ErrLongRecord = errors.New("a record has more than 1 MiB: is there a quote that does not end?")
)

// maxTime is the end of the year 9999, the last that RFC 3339 can write.
const maxTime = storage.Micros(253402300800e6 - 1)

// unclear is the time, the end of the year 2099, from which on whole seconds may be meant as milliseconds.
const unclear = storage.Micros(4102444800e6)

// Line is what one line of an edge list says.
type Line struct {
	From, To storage.UserID
	Time     storage.Micros
	Timed    bool // whether the line names a time
}

// ParseLine reads `from to [time]`. Fields are separated by blanks, tabs or one
// comma, and may be in double quotes; `#` begins a comment where a field may begin. found is false, without an
// error, for a line that says nothing. It does not allocate.
func ParseLine(line []byte) (p Line, found bool, err error) {
	from, rest, _ := cut(line)
	if len(from) == 0 && len(rest) == 0 || len(from) > 0 && from[0] == '#' {
		return p, false, nil
	}
	if over(rest) {
		return p, false, ErrFields
	}
	to, rest, _ := cut(rest)
	if p.From, err = ParseID(from); err != nil {
		return p, false, err
	}
	if p.To, err = ParseID(to); err != nil {
		return p, false, err
	}
	if over(rest) {
		return p, true, nil
	}
	tail := rest
	when, rest, comma := cut(rest)
	if len(when) == len(time.DateOnly) && when[4] == '-' && !comma && !over(rest) { // SQL's `2006-01-02 15:04:05`
		_, rest, comma = cut(rest)
		when = bytes.TrimRight(tail[:len(tail)-len(rest)], " \t\r\n")
	}
	if comma || !over(rest) {
		return p, false, ErrFields
	}
	p.Timed = true
	p.Time, err = parseTime(when)
	return p, err == nil, err
}

// EdgeHeader is the first line of an edge list if it names the columns.
type EdgeHeader struct {
	Reversed bool     // to comes before from
	Unknown  []string // names that do not say what is in their columns: these are taken for from, to and time in this order
}

// ErrHeader: the columns of an edge list are in another order, or are others.
var ErrHeader = errors.New("the columns of an edge list are from,to or to,from and then perhaps the time")

// Names of columns. In a column of users, the other column says whether they are from or to.
var (
	columnName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	saysFrom   = regexp.MustCompile(`(?i)^(from|source|src|follower|blocker|sender|requester)` + ofUsers)
	saysTo     = regexp.MustCompile(`(?i)^(to|target|dst|dest|destination|followee|followed|following|blocked|blockee|recipient|receiver|requestee)` + ofUsers)
	saysUser   = regexp.MustCompile(`(?i)^(user|node|id)?` + ofUsers)
	saysTime   = regexp.MustCompile(`(?i)(time|timestamp|date|^at|_at|edAt|^since|^when)$`)
)

const ofUsers = `([_-]?(user|node))?([_-]?id)?$`

// ParseEdgeHeader reads a line such as `from,to`: two or three names of ASCII letters, digits, `_` and `-`, perhaps in quotes, which
// begin with a letter as no id and no time does. ok is false for a line that is none. [ErrHeader].
func ParseEdgeHeader(line []byte) (h EdgeHeader, ok bool, err error) {
	var names [][]byte
	for rest := line; len(rest) > 0; {
		var name []byte
		name, rest, _ = cut(rest)
		if name = bytes.Trim(name, `"`); !columnName.Match(name) {
			return h, false, nil
		}
		names = append(names, name)
	}
	if n := len(names); n != 2 && n != 3 {
		return h, false, nil
	}
	straight := saysFrom.Match(names[0]) || saysTo.Match(names[1])
	h.Reversed = saysTo.Match(names[0]) || saysFrom.Match(names[1])
	isWrong := straight && h.Reversed
	for i, name := range names {
		isEnd, isTime := saysFrom.Match(name) || saysTo.Match(name), saysTime.Match(name)
		isWrong = isWrong || i < 2 && isTime || i == 2 && isEnd
		if !isEnd && !isTime && !(i < 2 && saysUser.Match(name) && (straight || h.Reversed)) {
			h.Unknown = append(h.Unknown, string(name))
		}
	}
	if isWrong {
		err = fmt.Errorf("%w, not %q", ErrHeader, bytes.TrimSpace(line))
	}
	return h, true, err
}

// AppendLine appends the line of an edge, which [ParseLine] reads as the same. The edge has ids and
// a time that a line can hold, see [Writable].
func AppendLine(line []byte, e storage.Edge) []byte {
	line = strconv.AppendInt(line, int64(e.From), 10)
	line = append(line, ' ')
	line = strconv.AppendInt(line, int64(e.To), 10)
	line = append(line, ' ')
	return append(AppendTime(line, e.UpdateTime), '\n')
}

// ErrDamaged: a row of the store that no file can hold.
var ErrDamaged = errors.New("a damaged row")

// Writable reports whether a line can hold an edge: only damaged rows have other ids and times.
func Writable(e storage.Edge) bool { return e.From > 0 && e.To > 0 && writableTime(e.UpdateTime) }

func writableTime(t storage.Micros) bool { return 0 <= t && t <= maxTime }

// AppendTime appends a time as Unix seconds, with a fraction of six digits unless that is 0 and the time is clear without it.
func AppendTime(text []byte, t storage.Micros) []byte {
	text = strconv.AppendInt(text, int64(t/1e6), 10)
	if micros := int64(t % 1e6); micros > 0 || t >= unclear {
		text = append(text, '.')
		for unit := int64(1e5); unit > 0; unit /= 10 {
			text = append(text, byte('0'+micros/unit%10))
		}
	}
	return text
}

// IsComment reports whether a line, or the beginning of one, is only a comment. Comments may have any
// length.
func IsComment(line []byte) bool {
	first, _, _ := cut(line)
	return len(first) > 0 && first[0] == '#'
}

// over reports whether nothing follows, or only a comment.
func over(rest []byte) bool { return len(rest) == 0 || rest[0] == '#' }

// cut splits the first field off a line, together with the separator behind it.
// comma reports whether that contained a comma.
func cut(line []byte) (field, rest []byte, comma bool) {
	begin := skipBlanks(line, 0)
	if begin < len(line) && line[begin] == '"' {
		if length := bytes.IndexByte(line[begin+1:], '"'); length >= 0 {
			return cutQuoted(line, begin+1, begin+1+length)
		}
	}
	end := begin
	for end < len(line) && !isBlank(line[end]) && line[end] != ',' {
		end++
	}
	rest, comma = separated(line[end:])
	return line[begin:end], rest, comma
}

// cutQuoted is [cut] for a field in quotes, which lies from begin to end. Behind the quote comes a separator.
func cutQuoted(line []byte, begin, end int) (field, rest []byte, comma bool) {
	if behind := line[end+1:]; len(behind) > 0 && !isBlank(behind[0]) && behind[0] != ',' {
		return line[begin-1:], nil, false // no id and no time is like that
	}
	rest, comma = separated(line[end+1:])
	return line[begin:end], rest, comma
}

// separated drops the separator that a text begins with.
func separated(text []byte) (rest []byte, comma bool) {
	next := skipBlanks(text, 0)
	if next < len(text) && text[next] == ',' {
		return text[skipBlanks(text, next+1):], true
	}
	return text[next:], false
}

func skipBlanks(line []byte, i int) int {
	for i < len(line) && isBlank(line[i]) {
		i++
	}
	return i
}

// isBlank counts line ends among the blanks, so that CRLF files need no care.
func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// ParseID reads the canonical decimal text of an id. Other spellings (a sign,
// leading zeros) are refused, as everywhere in Kith.
func ParseID(field []byte) (storage.UserID, error) {
	if len(field) == 0 {
		return 0, ErrFields
	}
	n, digits, fits := parseDigits(field)
	if digits != len(field) || field[0] == '0' && digits > 1 {
		return 0, errID
	}
	if !fits || n == 0 {
		return 0, ErrIDRange
	}
	return storage.UserID(n), nil
}

// parseDigits reads the digits that a field begins with. fits is false when the
// number is above 2^63−1.
func parseDigits(field []byte) (n int64, digits int, fits bool) {
	fits = true
	for digits < len(field) && '0' <= field[digits] && field[digits] <= '9' {
		d := int64(field[digits] - '0')
		if n > (math.MaxInt64-d)/10 {
			fits = false
		} else {
			n = n*10 + d
		}
		digits++
	}
	return n, digits, fits
}

// parseTime reads Unix seconds, with or without a fraction, RFC 3339, or a date or time of SQL, which is of UTC. Digits
// finer than a microsecond are dropped. A whole number that would be a time behind the year 9999 is milliseconds.
func parseTime(field []byte) (storage.Micros, error) {
	if len(field) > 4 && field[4] == '-' {
		return parseRFC3339(field)
	}
	seconds, digits, fits := parseDigits(field)
	if digits == 0 || field[0] == '0' && digits > 1 {
		return 0, errTime
	}
	fraction, ok := parseFraction(field[digits:])
	if !ok {
		return 0, errTime
	}
	whole := digits == len(field)
	switch millis := seconds; {
	case whole && fits && millis > int64(maxTime/1e6) && millis <= int64(maxTime/1e3):
		return storage.Micros(millis * 1e3), nil
	case !fits || seconds > int64(maxTime/1e6):
		return 0, errTimeUnit
	case whole && seconds >= int64(unclear/1e6):
		return 0, errUnclear
	}
	return storage.Micros(seconds*1e6 + fraction), nil
}

// parseFraction reads the fraction behind the seconds, if any, as microseconds.
func parseFraction(text []byte) (micros int64, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	if text[0] != '.' || len(text) == 1 {
		return 0, false
	}
	unit := int64(1e5)
	for _, c := range text[1:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		micros += int64(c-'0') * unit
		unit /= 10
	}
	return micros, true
}

func parseRFC3339(field []byte) (storage.Micros, error) {
	var upper [48]byte // RFC 3339 allows `t` and `z`, package time does not
	const rest = "T00:00:00Z"
	if len(field) > len(upper)-len(rest) {
		return 0, errTime
	}
	for i, c := range field {
		if c == 't' || c == 'z' {
			c -= 'a' - 'A'
		}
		upper[i] = c
	}
	text := upper[:len(field)]
	switch {
	case len(text) == len(time.DateOnly):
		text = append(text, rest...)
	case len(text) > len(time.DateOnly) && text[len(time.DateOnly)] == ' ':
		text[len(time.DateOnly)] = 'T'
		switch zone := bytes.LastIndexAny(text, "+-Z"); {
		case zone < len(time.DateOnly): // it is UTC
			text = append(text, 'Z')
		case len(text)-zone == len("+00"): // PostgreSQL leaves out minutes that are 0
			text = append(text, ":00"...)
		}
	}
	var t time.Time
	if err := t.UnmarshalText(text); err != nil {
		return 0, errTime
	}
	micros := storage.MicrosOf(t)
	if micros < 0 || micros > maxTime {
		return 0, errTimeUnit
	}
	return micros, nil
}
