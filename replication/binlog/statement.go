package binlog

import (
	"regexp"
	"slices"
	"strings"
)

// A statement is the text of a QUERY event, cut into words. String literals and comments are left
// out, but not the parts of comments that MySQL executes (`/*!50000 … */`).
type statement struct {
	words  []word
	schema string // the database it was run in
}

type word struct {
	text   string // without quotes
	quoted bool   // so it is not a keyword
}

// lexemes of SQL, as far as is needed to recognise names.
var lexemes = regexp.MustCompile("(?s)" +
	`'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"` + // text
	"|`(?:[^`]|``)*`" + // names
	`|/\*M?!\d*|/\*.*?\*/|\*/|--[ \t][^\n]*|#[^\n]*` + // comments
	`|[\p{L}\p{N}_$]+|[^\s]`)

func parse(schema, text string) statement {
	s := statement{schema: schema}
	for _, l := range lexemes.FindAllString(text, -1) {
		switch {
		case l[0] == '\'', l[0] == '#', strings.HasPrefix(l, "/*"), l == "*/", strings.HasPrefix(l, "--"):
		case l[0] == '`' && len(l) > 1:
			s.words = append(s.words, word{strings.ReplaceAll(l[1:len(l)-1], "``", "`"), true})
		case l[0] == '"' && len(l) > 1: // a name if ANSI_QUOTES is set
			s.words = append(s.words, word{l[1 : len(l)-1], true})
		default:
			s.words = append(s.words, word{l, false})
		}
	}
	return s
}

// is reports whether the words from i on are these keywords.
func (s statement) is(i int, keywords ...string) bool {
	for k, keyword := range keywords {
		if i+k >= len(s.words) || s.words[i+k].quoted || !strings.EqualFold(s.words[i+k].text, keyword) {
			return false
		}
	}
	return true
}

// find returns the index, from i on, of the first of the keywords; the end if there is none.
func (s statement) find(i int, keywords ...string) int {
	for ; i < len(s.words); i++ {
		if slices.ContainsFunc(keywords, func(k string) bool { return s.is(i, k) }) {
			break
		}
	}
	return i
}

// skip returns the first index from i on that is none of the keywords.
func (s statement) skip(i int, keywords ...string) int {
	for i < len(s.words) && slices.ContainsFunc(keywords, func(k string) bool { return s.is(i, k) }) {
		i++
	}
	return i
}

// savepoint returns the name of a SAVEPOINT or ROLLBACK TO.
func (s statement) savepoint() string {
	if len(s.words) == 0 {
		return ""
	}
	return s.words[len(s.words)-1].text
}

// changes reports whether the statement changes or removes rows of one of the tables in a way that
// the binlog does not show row by row. If it is not sure, it returns true.
func (s statement) changes(databases, tables []string) bool {
	from, to := 0, 0
	one := func(i int) (int, int) { // a name, perhaps with its database before it
		if i+1 < len(s.words) && s.words[i+1].text == "." {
			return i, i + 3
		}
		return i, i + 1
	}
	switch start := s.skip(0, "("); {
	case s.is(start, "WITH"):
		from, to = start, len(s.words)
		if verb := s.find(start, "UPDATE", "DELETE"); verb == len(s.words) {
			return false
		}
	case s.is(start, "INSERT"), s.is(start, "REPLACE"):
		from, to = one(s.skip(start+1, "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"))
	case s.is(start, "UPDATE"):
		from, to = start, s.find(start, "SET")
	case s.is(start, "DELETE"):
		from, to = start, s.find(start, "WHERE", "RETURNING")
	case s.is(start, "LOAD"):
		from, to = one(s.skip(s.find(start, "TABLE")+1, "TABLE"))
	case s.is(start, "TRUNCATE"):
		from, to = one(s.skip(start+1, "TABLE"))
	case s.is(start, "DROP", "TABLE"), s.is(start, "RENAME"):
		from, to = start, len(s.words)
	case s.is(start, "DROP", "DATABASE"), s.is(start, "DROP", "SCHEMA"):
		i := s.skip(start+2, "IF", "EXISTS")
		return i < len(s.words) && contains(databases, s.words[i].text)
	case s.is(start, "CREATE", "OR", "REPLACE", "TABLE"):
		from, to = one(start + 4)
	case s.is(start, "ALTER"):
		from, to = one(s.skip(s.find(start, "TABLE")+1, "IF", "EXISTS"))
		if !s.losesRows(start) {
			return false
		}
	default:
		return false
	}
	return s.names(from, to, databases, tables)
}

// losesRows reports whether an ALTER TABLE does more than change columns and keys.
func (s statement) losesRows(i int) bool {
	for ; i < len(s.words); i++ {
		switch {
		case s.is(i, "RENAME"):
			if !s.is(i+1, "COLUMN") && !s.is(i+1, "INDEX") && !s.is(i+1, "KEY") {
				return true
			}
		case s.is(i+1, "PARTITION") && (s.is(i, "DROP") || s.is(i, "TRUNCATE") || s.is(i, "EXCHANGE")),
			s.is(i+1, "TABLESPACE") && (s.is(i, "DISCARD") || s.is(i, "IMPORT")):
			return true
		}
	}
	return false
}

// names reports whether one of the tables is named in a range of words.
func (s statement) names(from, to int, databases, tables []string) bool {
	for i := from; i < to && i < len(s.words); i++ {
		if !contains(tables, s.words[i].text) {
			continue
		}
		database := s.schema
		if i >= 2 && s.words[i-1].text == "." && !s.words[i-1].quoted {
			database = s.words[i-2].text
		}
		if contains(databases, database) {
			return true
		}
	}
	return false
}

// contains compares as servers do that ignore case in names: it finds too much rather than too
// little.
func contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
