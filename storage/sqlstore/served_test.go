package sqlstore

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A served statement is one that is in the source, with the indexes that the comment above it names.
type served struct {
	at      token.Position
	dialect string // "MySQL" or "SQLite" if only one of them uses it
	name    string // of the constant or variable
	members []string
	indexes []string

	explained bool
}

var (
	beginsStatement = regexp.MustCompile(`^\s*(SELECT|WITH|UPDATE|DELETE)\s`)
	readsTable      = regexp.MustCompile(`\b(FROM|JOIN|UPDATE)\s+\w`)
	namedIndex      = regexp.MustCompile(`idx_\w+`)
	moreOfList      = regexp.MustCompile(`(\?|\(\?(?:, \?)*\))(?:,(?:\?|\(\?(?:, \?)*\)))+`)
	moreWanted      = regexp.MustCompile(`(?: UNION ALL SELECT \?)+\) wanted`)
	spaces          = regexp.MustCompile(`\s+`)
)

// membersOf returns the SELECTs that a statement joins by UNION ALL, as they are written: with one
// member in each list.
func membersOf(text string) []string {
	text = moreOfList.ReplaceAllString(text, "$1")
	text = moreWanted.ReplaceAllString(spaces.ReplaceAllString(text, " "), ") wanted")
	members := strings.Split(text, " UNION ALL")
	for i, m := range members {
		m = strings.TrimPrefix(strings.Trim(m, " "), "SELECT * FROM (")
		members[i] = strings.TrimLeft(m, "( ")
	}
	return members
}

// servedStatements reads all statements from the source. A statement whose comment names no index fails
// the test.
func servedStatements(t *testing.T) (all []*served) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err == nil {
			all = append(all, statementsIn(t, files, file)...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func statementsIn(t *testing.T, files *token.FileSet, file *ast.File) (all []*served) {
	t.Helper()
	above := map[int]string{} // comments by the line after them
	for _, c := range file.Comments {
		above[files.Position(c.End()).Line+1] = c.Text()
	}
	var within []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			within = within[:len(within)-1]
			return true
		}
		within = append(within, n)
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil || !beginsStatement.MatchString(text) || !readsTable.MatchString(text) {
			return true
		}
		s := &served{at: files.Position(literal.Pos()), members: membersOf(text)}
		for _, outer := range slices.Backward(within) {
			switch outer := outer.(type) {
			case *ast.KeyValueExpr:
				if key, ok := outer.Key.(*ast.Ident); ok && (key.Name == "MySQL" || key.Name == "SQLite") {
					s.dialect = key.Name
				}
			case *ast.ValueSpec:
				s.name = outer.Names[0].Name
			}
			_, by, ok := strings.Cut(strings.ReplaceAll(above[files.Position(outer.Pos()).Line], "\n", " "), "Served by ")
			if ok && s.indexes == nil {
				if s.indexes = namedIndex.FindAllString(by, -1); strings.Contains(by, "primary key") {
					s.indexes = append(s.indexes, "PRIMARY")
				}
			}
		}
		if s.indexes == nil {
			t.Errorf("%s: no comment above names the index that serves this statement (\"Served by …\"):\n%.300s", s.at, text)
		}
		all = append(all, s)
		return true
	})
	return all
}

// servedBy finds the statements that the text was made from, and the indexes that may serve it.
func servedBy(all []*served, text string) (indexes []string, known bool) {
	for _, member := range membersOf(text) {
		longest := 0
		var found []*served
		for _, s := range all {
			for _, m := range s.members {
				if !strings.HasPrefix(member, m) || len(m) < longest {
					continue
				}
				if len(m) > longest {
					longest, found = len(m), nil
				}
				found = append(found, s)
			}
		}
		if found == nil {
			return nil, false
		}
		for _, s := range found {
			s.explained = true
			indexes = append(indexes, s.indexes...)
		}
	}
	slices.Sort(indexes)
	return slices.Compact(indexes), true
}
