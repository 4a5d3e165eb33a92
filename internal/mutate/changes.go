package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// change replaces part of a file.
type change struct {
	file     string
	line     int
	source   string
	from, to int // in source
	by       string
}

func (c change) text() string { return c.source[:c.from] + c.by + c.source[c.to:] }

// changesOf lists what can be changed in the files of a package, without its tests and generated files.
func changesOf(dir string) (all []change, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		positions := token.NewFileSet()
		tree, err := parser.ParseFile(positions, file, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(tree) {
			continue
		}
		f := finder{file: file, source: string(text), positions: positions, all: &all}
		ast.Inspect(tree, f.visit)
	}
	return all, nil
}

// finder finds changes in one file.
type finder struct {
	file, source string
	positions    *token.FileSet
	all          *[]change
}

func (f finder) add(from, to token.Pos, by string) {
	at := f.positions.Position(from)
	*f.all = append(*f.all, change{f.file, at.Line, f.source, at.Offset, f.positions.Position(to).Offset, by})
}

func (f finder) textOf(n ast.Node) string {
	return f.source[f.positions.Position(n.Pos()).Offset:f.positions.Position(n.End()).Offset]
}

// opposite has what an operator is changed to.
var opposite = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+",
}

// sameEitherWay has the functions whose arguments are not swapped: those for which the order does not
// matter, and those that write text, because go vet finds most swaps in formats and tests should not
// depend on them.
var sameEitherWay = map[string]bool{
	"min": true, "max": true, "slices.Equal": true, "bytes.Equal": true, "errors.Join": true,
	"fmt.Errorf": true, "fmt.Sprintf": true, "registerer.MustRegister": true,
}

func (f finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		if cond := f.textOf(n.Cond); strings.HasPrefix(cond, "err != nil") {
			f.add(n.Cond.Pos(), n.Cond.End(), "false && "+cond) // the error is dropped
		} else {
			f.add(n.Cond.Pos(), n.Cond.End(), "!("+cond+")")
		}
	case *ast.BinaryExpr:
		if by, ok := opposite[n.Op]; ok && !isText(n.X) && !isText(n.Y) {
			f.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), by)
		}
	case *ast.CallExpr:
		if f.textOf(n.Fun) == "make" {
			f.visitLength(n)
			return false
		}
		if sameEitherWay[f.textOf(n.Fun)] {
			break
		}
		for i := 1; i < len(n.Args); i++ {
			a, b := f.textOf(n.Args[i-1]), f.textOf(n.Args[i])
			if isName(n.Args[i-1]) && isName(n.Args[i]) && a != b && a != "ctx" {
				f.add(n.Args[i-1].Pos(), n.Args[i].End(), b+", "+a)
			}
		}
	}
	return true
}

// visitLength finds changes of the length that is made. A capacity does not change results.
func (f finder) visitLength(made *ast.CallExpr) {
	if _, isMap := made.Args[0].(*ast.MapType); !isMap && len(made.Args) > 1 {
		ast.Inspect(made.Args[1], f.visit)
	}
}

func isText(x ast.Expr) bool {
	lit, ok := x.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

func isName(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return isName(x.X)
	}
	return false
}
