package graphfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kith/accounts"
	"kith/storage"
)

// fields reads a record by the places of its columns, and keeps the first error. What is read after that means nothing.
type fields struct {
	columns, record []string
	err             error
}

// fieldsOf are the fields of a record that has the columns of a kind.
func fieldsOf(kind Kind, record []string) *fields {
	f := &fields{columns: kind.Header(), record: record}
	if len(record) != len(f.columns) {
		f.err = fmt.Errorf("want %s", strings.Join(f.columns, ","))
		f.record = make([]string, len(f.columns))
	}
	return f
}

func (f *fields) check(err error) {
	if f.err == nil {
		f.err = err
	}
}

// bare is a field without the blanks around it.
func (f *fields) bare(column int) string { return strings.TrimSpace(f.record[column]) }

func (f *fields) id(column int) storage.UserID {
	id, err := ParseID([]byte(f.bare(column)))
	f.check(err)
	return id
}

// number is that of a post or a comment. They are as large as ids.
func (f *fields) number(column int) int64 { return int64(f.id(column)) }

func (f *fields) time(column int) storage.Micros {
	at, err := parseTime([]byte(f.bare(column)))
	f.check(err)
	return at
}

// timeOrNone is a time that may be missing.
func (f *fields) timeOrNone(column int) storage.Micros {
	if f.bare(column) == "" {
		return 0
	}
	return f.time(column)
}

// word is the index of the word that a field holds.
func (f *fields) word(column int, words []string) int {
	at := slices.Index(words, strings.ToLower(f.bare(column)))
	if at < 0 {
		f.check(fmt.Errorf("%s is one of %s", f.columns[column], strings.Join(words, ", ")))
	}
	return at
}

// wordOr is that of a word that may be missing.
func (f *fields) wordOr(column int, words []string, missing int) int {
	if f.bare(column) == "" {
		return missing
	}
	return f.word(column, words)
}

func (f *fields) truth(column int) bool { return f.word(column, truths) == 1 }

// key is a client key as clients may give it.
func (f *fields) key(column int) string {
	key := f.bare(column)
	f.check(accounts.CheckClientKey(key))
	return key
}

// text is one as users may write it, of at most so many characters.
func (f *fields) text(column, most int) string {
	text, err := accounts.CheckText(f.columns[column], f.record[column], 0, most)
	f.check(err)
	return text
}

// The same values as text.

func numberText(n int64) string { return strconv.FormatInt(n, 10) }

func timeText(t storage.Micros) string { return string(AppendTime(nil, t)) }

func truthText(is bool) string { return strconv.FormatBool(is) }
