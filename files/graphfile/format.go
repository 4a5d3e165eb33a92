package graphfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kith/accounts"
	"kith/storage"
)

// Format is how the rows of a kind are records of a file: it says once which column is which value, for both ways.
type Format[T any] struct {
	Kind    Kind
	columns func(*T) []column
	check   func(*T) error // what is wrong with a row that has been read; may be nil
}

// column is a value of a row as text.
type column struct {
	name  string
	read  func(text string) error
	write func() (text string, ok bool) // not ok: no file can hold it
}

func namesOf(columns []column) []string {
	return storage.Each(columns, func(c column) string { return c.name })
}

// names are the columns of the records.
func (r Format[T]) names() []string { return namesOf(r.columns(new(T))) }

// Read reads a record. Keys, texts and media have to be as those that users write.
func (r Format[T]) Read(record []string) (row T, err error) {
	columns := r.columns(&row)
	if len(record) != len(columns) {
		return row, fmt.Errorf("want %s", strings.Join(namesOf(columns), ","))
	}
	for i, c := range columns {
		if err := c.read(record[i]); err != nil {
			return row, err
		}
	}
	if r.check != nil {
		err = r.check(&row)
	}
	return row, err
}

// Record is the record of a row, which Read reads as the same. Only a damaged row has none.
func (r Format[T]) Record(row T) (record []string, err error) {
	for i, c := range r.columns(&row) {
		text, ok := c.write()
		if !ok {
			return nil, fmt.Errorf("%w: no file can hold the %s of the row of %s that begins with %q", ErrDamaged, c.name, r.Kind, record[:min(i, 2)])
		}
		record = append(record, text)
	}
	return record, nil
}

// value is a column that may have blanks around it.
func value[T any](name string, v *T, read func(text string) (T, error), write func(T) (string, bool)) column {
	return column{name, func(text string) (err error) {
		*v, err = read(strings.TrimSpace(text))
		return err
	}, func() (string, bool) { return write(*v) }}
}

// ifGiven is a column that may be missing, or empty: then the value is the zero value.
func ifGiven(c column) column {
	return column{c.name, func(text string) error {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return c.read(text)
	}, c.write}
}

// orEmpty is a column that is empty if the value is the zero value.
func orEmpty[T comparable](v *T, c column) column {
	return column{c.name, ifGiven(c).read, func() (string, bool) {
		if *v == *new(T) {
			return "", true
		}
		return c.write()
	}}
}

func id(name string, v *storage.UserID) column {
	return value(name, v, func(text string) (storage.UserID, error) { return ParseID([]byte(text)) },
		func(id storage.UserID) (string, bool) { return id.String(), id > 0 })
}

// number is that of a post or a comment. They are as large as ids.
func number(name string, v *int64) column { return id(name, (*storage.UserID)(v)) }

func moment(name string, v *storage.Micros) column {
	return value(name, v, func(text string) (storage.Micros, error) { return parseTime([]byte(text)) },
		func(t storage.Micros) (string, bool) { return string(AppendTime(nil, t)), writableTime(t) })
}

// word is a value as the word at its place in a list.
func word[T ~uint8](name string, v *T, words []string) column {
	return column{name, func(text string) error {
		at := slices.Index(words, strings.ToLower(strings.TrimSpace(text)))
		if at < 0 {
			return fmt.Errorf("%s is one of %s", name, strings.Join(words, ", "))
		}
		*v = T(at)
		return nil
	}, func() (string, bool) {
		if int(*v) >= len(words) {
			return "", false
		}
		return words[*v], true
	}}
}

var truths = []string{"false", "true"}

// truth is whether a value is as named.
func truth(name string, v *bool, named bool) column {
	return column{name, func(text string) error {
		var is uint8
		err := word(name, &is, truths).read(text)
		*v = (is == 1) == named
		return err
	}, func() (string, bool) { return strconv.FormatBool(*v == named), true }}
}

// plain is a text that is taken as it is, blanks included.
func plain(name string, v *string) column {
	return checked(name, v, func(_, text string) (string, error) { return text, nil })
}

// text is one as users may write it, of at most so many characters.
func text(name string, v *string, most int) column {
	return checked(name, v, func(name, text string) (string, error) { return accounts.CheckText(name, text, 0, most) })
}

// key is a client key as clients may give it.
func key(name string, v *string) column {
	return checked(name, v, func(_, text string) (string, error) {
		text = strings.TrimSpace(text)
		return text, accounts.CheckClientKey(text)
	})
}

// attributes are a JSON object of names and values, in any order, or nothing. Answers hold the values as they are here, so that text which is
// not UTF-8, or has half of a surrogate pair, would make whole answers unreadable.
func attributes(v *storage.Attributes) column {
	return value("attributes", v, func(text string) (storage.Attributes, error) {
		given, err := storage.Attributes(text).Values()
		if err != nil || text != "" && (given == nil || !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))) {
			return "", errors.New("attributes must be a JSON object")
		}
		return storage.AttributeChange(given).Apply("")
	}, func(a storage.Attributes) (string, bool) { return string(a), true })
}

func checked(name string, v *string, check func(name, text string) (string, error)) column {
	return column{name, func(text string) (err error) {
		*v, err = check(name, text)
		return err
	}, func() (string, bool) { return *v, true }}
}
