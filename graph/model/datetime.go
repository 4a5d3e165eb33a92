package model

import (
	"fmt"
	"io"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// dateTime is RFC 3339 in UTC, always with microseconds, the resolution that the
// tables keep. (https://scalars.graphql.org/andimarek/date-time)
const dateTime = `"2006-01-02T15:04:05.000000Z"`

// MarshalDateTime writes a time.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		var text [len(dateTime)]byte
		w.Write(AppendDateTime(text[:0], t))
	})
}

// AppendDateTime appends a time as [MarshalDateTime] writes it.
func AppendDateTime(to []byte, t time.Time) []byte { return t.UTC().AppendFormat(to, dateTime) }

// UnmarshalDateTime reads RFC 3339 text with any offset. gqlgen requires it of every scalar, even
// if, as with this one today, no argument has the type.
func UnmarshalDateTime(v any) (time.Time, error) {
	text, ok := v.(string)
	if !ok {
		return time.Time{}, fmt.Errorf("DateTime is a string")
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if t = t.UTC(); err != nil || t.Year() < 0 || t.Year() > 9999 { // which its offset may lead to, and RFC 3339 cannot write
		return time.Time{}, fmt.Errorf("%.40q is not a DateTime (RFC 3339)", text)
	}
	return t, nil
}
