package graphfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	read  func(name, text string) error
	write func() (text string, ok bool) // not ok: no file can hold it
}

// Read reads a record. Keys, texts and media have to be as those that users write.
func (r Format[T]) Read(record []string) (row T, err error) {
	names := r.Kind.Header()
	if n := len(record); n == len(names)-1 && names[n] == added {
		record = append(record, "")
	}
	if len(record) != len(names) {
		return row, fmt.Errorf("want %s", strings.Join(names, ","))
	}
	for i, c := range r.columns(&row) {
		if err := c.read(names[i], record[i]); err != nil {
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
			return nil, fmt.Errorf("the row of %s that begins with %q is damaged: no file can hold its %s", r.Kind, record[:min(i, 2)], r.Kind.Header()[i])
		}
		record = append(record, text)
	}
	return record, nil
}

// value is a column that may have blanks around it.
func value[T any](v *T, read func(text string) (T, error), write func(T) (string, bool)) column {
	return column{func(_, text string) (err error) {
		*v, err = read(strings.TrimSpace(text))
		return err
	}, func() (string, bool) { return write(*v) }}
}

// ifGiven is a column that may be missing, or empty: then the value is the zero value.
func ifGiven(c column) column {
	return column{func(name, text string) error {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return c.read(name, text)
	}, c.write}
}

// orEmpty is a column that is empty if the value is the zero value.
func orEmpty[T comparable](v *T, c column) column {
	return column{ifGiven(c).read, func() (string, bool) {
		if *v == *new(T) {
			return "", true
		}
		return c.write()
	}}
}

func id(v *storage.UserID) column {
	return value(v, func(text string) (storage.UserID, error) { return ParseID([]byte(text)) },
		func(id storage.UserID) (string, bool) { return id.String(), id > 0 })
}

// number is that of a post or a comment. They are as large as ids.
func number(v *int64) column { return id((*storage.UserID)(v)) }

func moment(v *storage.Micros) column {
	return value(v, func(text string) (storage.Micros, error) { return parseTime([]byte(text)) },
		func(t storage.Micros) (string, bool) { return string(AppendTime(nil, t)), writableTime(t) })
}

// word is a value as the word at its place in a list.
func word[T ~uint8](v *T, words []string) column {
	return column{func(name, text string) error {
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
func truth(v *bool, named bool) column {
	return column{func(name, text string) error {
		var is uint8
		err := word(&is, truths).read(name, text)
		*v = (is == 1) == named
		return err
	}, func() (string, bool) { return strconv.FormatBool(*v == named), true }}
}

// plain is a text that is taken as it is, blanks included.
func plain(v *string) column {
	return checked(v, func(_, text string) (string, error) { return text, nil })
}

// text is one as users may write it, of at most so many characters.
func text(v *string, most int) column {
	return checked(v, func(name, text string) (string, error) { return accounts.CheckText(name, text, 0, most) })
}

// key is a client key as clients may give it.
func key(v *string) column {
	return checked(v, func(_, text string) (string, error) {
		text = strings.TrimSpace(text)
		return text, accounts.CheckClientKey(text)
	})
}

// attributes are a JSON object of names and values, in any order, or nothing.
func attributes(v *storage.Attributes) column {
	return value(v, func(text string) (storage.Attributes, error) {
		given, err := storage.Attributes(text).Values()
		if err != nil || given == nil && text != "" {
			return "", errors.New("attributes must be a JSON object")
		}
		return storage.AttributeChange(given).Apply("")
	}, func(a storage.Attributes) (string, bool) { return string(a), true })
}

func checked(v *string, check func(name, text string) (string, error)) column {
	return column{func(name, text string) (err error) {
		*v, err = check(name, text)
		return err
	}, func() (string, bool) { return *v, true }}
}
