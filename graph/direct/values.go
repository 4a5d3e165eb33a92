package direct

import (
	"strconv"
	"time"
	"unicode/utf8"

	"kith/storage"
)

// The kinds of fields, by what a getter returns.

func text[T any](get func(*T) string) *field {
	return &field{append: func(to []byte, v any) []byte { return appendString(to, get(v.(*T))) }}
}

func optionalText[T any](get func(*T) *string) *field {
	return &field{append: func(to []byte, v any) []byte {
		if s := get(v.(*T)); s != nil {
			return appendString(to, *s)
		}
		return append(to, "null"...)
	}}
}

func boolean[T any](get func(*T) bool) *field {
	return &field{append: func(to []byte, v any) []byte { return strconv.AppendBool(to, get(v.(*T))) }}
}

func optionalBoolean[T any](get func(*T) *bool) *field {
	return &field{append: func(to []byte, v any) []byte {
		if b := get(v.(*T)); b != nil {
			return strconv.AppendBool(to, *b)
		}
		return append(to, "null"...)
	}}
}

func moment[T any](get func(*T) time.Time) *field {
	return &field{append: func(to []byte, v any) []byte { return appendTime(to, get(v.(*T))) }}
}

func optionalMoment[T any](get func(*T) *time.Time) *field {
	return &field{append: func(to []byte, v any) []byte {
		if t := get(v.(*T)); t != nil {
			return appendTime(to, *t)
		}
		return append(to, "null"...)
	}}
}

// object is a field that is another object, or null.
func object[T, U any](of func() *objectType, get func(*T) *U) *field {
	return &field{
		of: of,
		appendBelow: func(to []byte, v any, below *plan, most int) []byte {
			if one := get(v.(*T)); one != nil {
				return below.appendObject(to, one, most)
			}
			return append(to, "null"...)
		},
		anyBelow: func(v any, is func(any) bool) bool {
			one := get(v.(*T))
			return one != nil && is(one)
		},
	}
}

// list is a field that is a list of objects; a nil list is null.
func list[T, U any](of func() *objectType, get func(*T) []*U) *field {
	return &field{
		of: of,
		appendBelow: func(to []byte, v any, below *plan, most int) []byte {
			all := get(v.(*T))
			if all == nil {
				return append(to, "null"...)
			}
			to = append(to, '[')
			for i, one := range all {
				if len(to) > most {
					break
				}
				if i > 0 {
					to = append(to, ',')
				}
				if one == nil {
					to = append(to, "null"...)
					continue
				}
				to = below.appendObject(to, one, most)
			}
			return append(to, ']')
		},
		anyBelow: func(v any, is func(any) bool) bool {
			for _, one := range get(v.(*T)) {
				if one != nil && is(one) {
					return true
				}
			}
			return false
		},
	}
}

// How values are spelled: as gqlgen and kith/graph/scalar do.

func appendInt(to []byte, n int64) []byte { return strconv.AppendInt(to, n, 10) }

func appendFloat(to []byte, f float64) []byte { return strconv.AppendFloat(to, f, 'g', -1, 64) }

func appendID(to []byte, id storage.UserID) []byte {
	return append(appendInt(append(to, '"'), int64(id)), '"')
}

func appendTime(to []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(to, `"2006-01-02T15:04:05.000000Z"`)
}

const hex = "0123456789ABCDEF"

func appendString(to []byte, s string) []byte {
	to = append(to, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '\\' && c != '"' || c >= utf8.RuneSelf {
			continue
		}
		to = append(to, s[start:i]...)
		switch c {
		case '\t':
			to = append(to, `\t`...)
		case '\r':
			to = append(to, `\r`...)
		case '\n':
			to = append(to, `\n`...)
		case '\\', '"':
			to = append(to, '\\', c)
		default:
			to = append(to, `\u00`...)
			to = append(to, hex[c>>4], hex[c&0xf])
		}
		start = i + 1
	}
	return append(append(to, s[start:]...), '"')
}
