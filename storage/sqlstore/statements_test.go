package sqlstore

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

var update = flag.Bool("update", false, "write testdata/*.sql anew")

// statementFiles have every statement as a dialect sends it, with its name and the indexes that serve it.
var statementFiles = map[string]string{"MySQL": "testdata/mysql.sql", "SQLite": "testdata/sqlite.sql"}

// TestStatements compares these files with the source.
func TestStatements(t *testing.T) {
	all := statementsInSource(t)
	for dialect, file := range statementFiles {
		var text strings.Builder
		for _, s := range all {
			if s.dialect == "" || s.dialect == dialect {
				text.WriteString(s.entry())
			}
		}
		if *update {
			must.OK(t, os.WriteFile(file, []byte(text.String()), 0o644))
			continue
		}
		was, is := readStatements(t, file), strings.SplitAfter(text.String(), "\n\n")
		for _, s := range was {
			check.That(t, slices.Contains(is, s.entry()), "%s has, and the source has not:\n%s", file, s.entry())
		}
		for _, entry := range is {
			if entry != "" && !slices.ContainsFunc(was, func(s *served) bool { return s.entry() == entry }) {
				t.Errorf("the source has, and %s has not (write it with: go test ./storage/sqlstore -run TestStatements -update):\n%s", file, entry)
			}
		}
	}
}

// A served statement has the indexes that the comment above it names.
type served struct {
	dialect string // "MySQL" or "SQLite" if only one of them uses it
	name    string // of the constant or variable
	of      string // which of several it is: the table, for example
	indexes []string
	text    string

	members   []string
	explained bool
}

// entry is a statement in a file.
func (s *served) entry() string {
	head := "-- " + s.name
	if s.of != "" {
		head += ", " + s.of
	}
	if s.indexes != nil {
		head += ". Served by " + strings.Join(s.indexes, ", ") + "."
	}
	return head + "\n" + strings.TrimPrefix(s.text, "\n") + "\n\n"
}

var entryHead = regexp.MustCompile(`^-- ([\w.]+)(?:, ([^.]+))?(?:\. Served by (.+)\.)?$`)

// readStatements reads a file of statements.
func readStatements(t *testing.T, file string) (all []*served) {
	t.Helper()
	text := must.File(t, file)
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n\n"), "\n\n") {
		head, statement, _ := strings.Cut(entry, "\n")
		of := entryHead.FindStringSubmatch(head)
		must.That(t, of != nil, "%s: %q is no head of a statement", file, head)
		s := &served{name: of[1], of: of[2], text: statement, members: membersOf(statement)}
		if of[3] != "" {
			s.indexes = strings.Split(of[3], ", ")
		}
		all = append(all, s)
	}
	return all
}

var (
	isStatement     = regexp.MustCompile(`^\s*(SELECT|WITH|UPDATE|DELETE|INSERT|REPLACE)\s`)
	beginsStatement = regexp.MustCompile(`^\s*(SELECT|WITH|UPDATE|DELETE)\s`)
	namesTable      = regexp.MustCompile(`\b(FROM|JOIN|UPDATE|INTO)\s+[\w{]`)
	namedIndex      = regexp.MustCompile(`idx_\w+`)
	moreOfList      = regexp.MustCompile(`(\?|\(\?(?:, \?)*\))(?:,(?:\?|\(\?(?:, \?)*\)))+`)
	moreWanted      = regexp.MustCompile(`(?: UNION ALL SELECT \?)+\) wanted`)
	spaces          = regexp.MustCompile(`\s+`)
	sidesOfCalls    = map[string][]storage.Side{
		"storage.AllSides[:]...": storage.AllSides[:], "storage.Sides[:]...": storage.Sides[:], "storage.Truths[:]...": storage.Truths[:],
		"db.Follows...": db.Follows, "db.WithMarks...": db.WithMarks, "db.Counted...": db.Counted,
		"storage.AllSides[:storage.FavoriteInbox]...": storage.AllSides[:storage.FavoriteInbox],
		"itemSides...": itemSides, "pagedSides...": pagedSides,
		"storage.Favorites, storage.Relations":                            {storage.Favorites, storage.Relations},
		"storage.Relations, storage.RelationInbox":                        {storage.Relations, storage.RelationInbox},
		"storage.FavoriteInbox, storage.Relations, storage.RelationInbox": storage.AllSides[storage.FavoriteInbox:],
		"storage.Inverse, storage.Inbox, storage.Favorites, storage.FavoriteInbox, storage.RelationInbox": {
			storage.Inverse, storage.Inbox, storage.Favorites, storage.FavoriteInbox, storage.RelationInbox,
		},
	}
	tablesOfSides    = map[string]string{"Forward": "following", "Inverse": "follower", "Requests": "friend_request", "Inbox": "friend_request_inbox", "Favorites": "favorite", "FavoriteInbox": "favorite_inbox", "Relations": "relation", "RelationInbox": "relation_inbox", "MarkSide": "edge_marks"}
	dialectsOfFields = []string{"MySQL", "SQLite"}
)

// statementsInSource reads all statements from the source, by name, and writes those for several tables or both dialects as the
// program does. A statement that looks something up, and whose comment names no index, fails the test.
func statementsInSource(t *testing.T) (all []*served) {
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
	must.OK(t, err)
	inOrder := map[string]db.InOrder{"posts": postsInOrder, "lists": listsInOrder, "moderation": moderationInOrder}
	for _, side := range storage.Truths {
		inOrder["rows "+side.String()] = edgesInOrder[side]
	}
	for _, kind := range storage.AnnotationKinds {
		inOrder[fmt.Sprint("annotations ", kind)] = annotationsInOrder[kind]
	}
	for of, texts := range inOrder {
		primary := []string{"PRIMARY"}
		all = append(all,
			&served{name: "db.ReadInOrder", of: of + " Rest", indexes: primary, text: texts.Rest},
			&served{name: "db.ReadInOrder", of: of + " Behind", indexes: primary, text: texts.Behind.MySQL, dialect: "MySQL"},
			&served{name: "db.ReadInOrder", of: of + " Behind", indexes: primary, text: texts.Behind.SQLite, dialect: "SQLite"})
	}
	for of, rows := range map[string]rowsOfPair{"follows": follows, "followsAndMarks": followsAndMarks, "allRowsOfPair": allRowsOfPair} {
		all = append(all, &served{name: "rowsOf", of: of, indexes: []string{"PRIMARY"}, text: rows.lock})
	}
	slices.SortStableFunc(all, func(a, b *served) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.of, b.of)) })
	return all
}

func statementsIn(t *testing.T, files *token.FileSet, file *ast.File) (all []*served) {
	t.Helper()
	above := map[int]string{} // comments by the line after them
	for _, c := range file.Comments {
		above[files.Position(c.End()).Line+1] = strings.ReplaceAll(c.Text(), "\n", " ")
	}
	var within []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			within = within[:len(within)-1]
			return true
		}
		within = append(within, n)
		if call, ok := n.(*ast.CallExpr); ok && nameOf(call.Fun) == "erased" {
			comment := above[files.Position(n.Pos()).Line]
			for i, text := range erasedBy(t, call) {
				part := call.Args[0].(*ast.BasicLit).Value
				all = append(all, &served{name: "erasedRows", of: part + " " + strconv.Itoa(i), indexes: indexesIn(comment), text: text})
			}
		}
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil || !isStatement.MatchString(text) || !namesTable.MatchString(text) {
			return true
		}
		s := &served{}
		var of []string
		var sides []storage.Side
		both, comment := false, ""
		for i, outer := range slices.Backward(within) {
			switch outer := outer.(type) {
			case *ast.KeyValueExpr:
				key := nameOf(outer.Key)
				switch {
				case slices.Contains(dialectsOfFields, key):
					s.dialect = key
				default:
					of = append(of, cmp.Or(tablesOfSides[key], key))
				}
			case *ast.CompositeLit:
				if at := slices.IndexFunc(outer.Elts, func(e ast.Expr) bool { return e == within[i+1] }); at >= 0 {
					if _, keyed := outer.Elts[at].(*ast.KeyValueExpr); !keyed {
						of = append(of, strconv.Itoa(at))
					}
				}
			case *ast.CallExpr:
				switch function := nameOf(outer.Fun); {
				case function == "Both":
					both = true
				case function == "ForSides" && outer.Args[0] == within[min(i+1, len(within)-1)]:
					sides = sidesOf(t, outer.Args[1:], outer.Ellipsis)
				case function == "ForSides":
					sides = sidesOf(t, outer.Args, outer.Ellipsis)
				}
			case *ast.ValueSpec:
				s.name = outer.Names[0].Name
			case *ast.FuncDecl:
				s.name = cmp.Or(s.name, outer.Name.Name)
			}
			if _, by, ok := strings.Cut(above[files.Position(outer.Pos()).Line], "Served by "); ok && comment == "" {
				comment = by
			}
		}
		slices.Reverse(of)
		s.of = strings.Join(of, " ")
		if file.Name.Name != "sqlstore" {
			s.name = file.Name.Name + "." + s.name
		}
		text = db.WithColumns(text)
		reads := beginsStatement.MatchString(text)
		if reads && comment == "" {
			t.Errorf("%s: no comment above names the index that serves this statement (\"Served by …\"):\n%.300s", files.Position(literal.Pos()), text)
		}
		add := func(dialect, text, comment, table string) {
			one := &served{dialect: dialect, name: s.name, of: cmp.Or(s.of, table), text: text}
			if reads {
				one.indexes = indexesIn(comment)
			}
			all = append(all, one)
		}
		addEach := func(dialect, text string) {
			if sides == nil {
				add(dialect, text, comment, "")
			}
			for _, side := range sides {
				add(dialect, db.OfSide(text, side), db.OfSide(comment, side), db.OfSide("{table}", side))
			}
		}
		if texts := db.Both(text); both {
			addEach("MySQL", texts.MySQL)
			addEach("SQLite", texts.SQLite)
		} else {
			addEach(s.dialect, text)
		}
		return true
	})
	return all
}

// erasedBy are the statements that a call of erased makes.
func erasedBy(t *testing.T, call *ast.CallExpr) []string {
	t.Helper()
	var texts []string
	for _, arg := range call.Args[:5] {
		text := arg.(*ast.BasicLit).Value
		if unquoted, err := strconv.Unquote(text); err == nil {
			text = unquoted
		}
		texts = append(texts, text)
	}
	part, err := strconv.Atoi(texts[0])
	must.OK(t, err)
	r := erased(part, texts[1], texts[2], texts[3], texts[4], 0)
	return []string{r.pick, r.remove}
}

// sidesOf are the sides that are passed to db.ForSides.
func sidesOf(t *testing.T, args []ast.Expr, ellipsis token.Pos) []storage.Side {
	t.Helper()
	var texts []string
	for _, arg := range args {
		texts = append(texts, types.ExprString(arg))
	}
	text := strings.Join(texts, ", ")
	if ellipsis.IsValid() {
		text += "..."
	}
	sides, known := sidesOfCalls[text]
	check.That(t, known, "the test does not know the sides %s", text)
	return sides
}

// nameOf is the name of a key or function, without its package.
func nameOf(key ast.Expr) string {
	switch key := key.(type) {
	case *ast.Ident:
		return key.Name
	case *ast.SelectorExpr:
		return key.Sel.Name
	}
	return fmt.Sprint(key)
}

// indexesIn are the indexes that the end of a comment names.
func indexesIn(by string) []string {
	indexes := namedIndex.FindAllString(by, -1)
	if strings.Contains(by, "primary key") {
		indexes = append(indexes, "PRIMARY")
	}
	slices.Sort(indexes)
	return slices.Compact(indexes)
}

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
