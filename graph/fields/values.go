package fields

import (
	"strconv"
	"time"
	"unicode/utf8"

	"kith/graph/model"
	"kith/storage"
)

// Value says how to write a field whose value is at hand: a scalar, an object, or a list of
// objects. v is the object that has the field.
type Value struct {
	Append func(to []byte, v any) []byte // of a scalar
	Fails  func(v any) bool              // whether it could not be read; nil: never

	Object func(v any) any // nil for null

	Len func(v any) int        // of a list; negative: null
	At  func(v any, i int) any // an element; nil for null
}

// TypeOf is the type of an object of which at least one field has a [Value]; nil for others.
func TypeOf(v any) *Type {
	switch v.(type) {
	case *model.User:
		return &user
	case *model.UserEdge:
		return &userEdge
	case *model.UserConnection:
		return &userConnection
	case *model.PageInfo:
		return &pageInfo
	case *model.Relationship:
		return &relationship
	case *model.Post:
		return &post
	case *model.PostEdge:
		return &postEdge
	case *model.PostConnection:
		return &postConnection
	case *model.FeedConnection:
		return &feedConnection
	case *model.Comment:
		return &comment
	case *model.CommentEdge:
		return &commentEdge
	case *model.CommentConnection:
		return &commentConnection
	case *model.FavoriteEdge:
		return &favoriteEdge
	case *model.FavoriteConnection:
		return &favoriteConnection
	case *model.FavoritedByEdge:
		return &favoritedByEdge
	case *model.FavoritedByConnection:
		return &favoritedByConnection
	case *model.Media:
		return &media
	case *model.SuggestionEdge:
		return &suggestionEdge
	case *model.UserSearchEdge:
		return &searchEdge
	}
	return nil
}

// The kinds of values, by the result of a getter.

func id[T any](get func(*T) storage.UserID) *Value {
	return &Value{Append: func(to []byte, v any) []byte {
		return append(appendInt(append(to, '"'), int64(get(v.(*T)))), '"')
	}}
}

func text[T any, S ~string](get func(*T) S) *Value {
	return &Value{Append: func(to []byte, v any) []byte { return AppendString(to, string(get(v.(*T)))) }}
}

func optionalText[T any](get func(*T) *string) *Value {
	return optional(get, AppendString)
}

func boolean[T any](get func(*T) bool) *Value {
	return &Value{Append: func(to []byte, v any) []byte { return strconv.AppendBool(to, get(v.(*T))) }}
}

func optionalBoolean[T any](get func(*T) *bool) *Value {
	return optional(get, strconv.AppendBool)
}

func moment[T any](get func(*T) time.Time) *Value {
	return &Value{Append: func(to []byte, v any) []byte { return appendTime(to, get(v.(*T))) }}
}

func optionalMoment[T any](get func(*T) *time.Time) *Value {
	return optional(get, appendTime)
}

func decimal[T any](get func(*T) float64) *Value {
	return &Value{Append: func(to []byte, v any) []byte { return strconv.AppendFloat(to, get(v.(*T)), 'g', -1, 64) }}
}

// number is an Int, which fails if get does.
func number[T any](get func(*T) (int32, error)) *Value {
	return &Value{
		Append: func(to []byte, v any) []byte {
			n, _ := get(v.(*T))
			return appendInt(to, int64(n))
		},
		Fails: func(v any) bool {
			_, err := get(v.(*T))
			return err != nil
		},
	}
}

func optional[T, V any](get func(*T) *V, spell func([]byte, V) []byte) *Value {
	return &Value{Append: func(to []byte, v any) []byte {
		if value := get(v.(*T)); value != nil {
			return spell(to, *value)
		}
		return append(to, "null"...)
	}}
}

// object is a field that is another object, or null.
func object[T, U any](get func(*T) *U) *Value {
	return &Value{Object: func(v any) any { return orNil(get(v.(*T))) }}
}

// list is a field that is a list of objects; a nil list is null.
func list[T, U any](get func(*T) []*U) *Value {
	return &Value{
		Len: func(v any) int {
			if all := get(v.(*T)); all != nil {
				return len(all)
			}
			return -1
		},
		At: func(v any, i int) any { return orNil(get(v.(*T))[i]) },
	}
}

func orNil[T any](v *T) any {
	if v == nil {
		return nil
	}
	return v
}

// How values are written: as gqlgen and kith/graph/scalar write them.

func appendInt(to []byte, n int64) []byte { return strconv.AppendInt(to, n, 10) }

func appendTime(to []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(to, `"2006-01-02T15:04:05.000000Z"`)
}

const hex = "0123456789ABCDEF"

// AppendString writes a text.
func AppendString(to []byte, s string) []byte {
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
