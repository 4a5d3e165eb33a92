package selections

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/apierr"
)

// Settle gives the values in the text of a validated document, which nobody uses yet, the form of coerced values: a single value
// where a list is taken becomes a list of one, a number where an ID is taken becomes a text. It corrects block strings, and refuses
// texts with half of a surrogate pair, empty objects where a scalar or an enum is taken, and numbers out of range where a scalar of the
// schema's own is taken: validation lets them pass. And `__typename` belongs to no type any more: gqlgen takes that of a union for another
// field than that of an object in it.
func Settle(doc *ast.QueryDocument) *gqlerror.Error {
	var s settling
	for _, op := range doc.Operations {
		for _, v := range op.VariableDefinitions {
			s.value(v.DefaultValue)
		}
		s.directives(op.Directives)
		s.selections(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		s.directives(f.Directives)
		s.selections(f.SelectionSet)
	}
	return s.err
}

type settling struct {
	text []rune // of the document, since positions count characters; nil: not needed so far
	err  *gqlerror.Error
}

func (s *settling) selections(set ast.SelectionSet) {
	for _, selection := range set {
		if field, is := selection.(*ast.Field); is {
			s.arguments(field.Arguments)
			if field.Name == "__typename" {
				field.ObjectDefinition = nil
			}
		}
		directives, below := Parts(selection)
		s.directives(directives)
		s.selections(below)
	}
}

func (s *settling) directives(list ast.DirectiveList) {
	for _, d := range list {
		s.arguments(d.Arguments)
	}
}

func (s *settling) arguments(list ast.ArgumentList) {
	for _, a := range list {
		s.value(a.Value)
	}
}

func (s *settling) value(v *ast.Value) {
	if v == nil {
		return
	}
	for _, child := range v.Children {
		s.value(child.Value)
	}
	switch {
	case v.Kind == ast.BlockValue:
		s.dedent(v)
	case v.Kind == ast.StringValue && strings.ContainsRune(v.Raw, utf8.RuneError) && surrogate.MatchString(whole.ReplaceAllString(string(s.written(v)), "|")):
		s.refuse(v, "a text has half of a surrogate pair")
	case v.Kind == ast.ObjectValue && v.Definition != nil && (v.Definition.Kind == ast.Enum || slices.Contains(builtIn, v.Definition.Name)):
		s.refuse(v, fmt.Sprintf("an object is given, and it takes %s", v.ExpectedType))
	case v.Kind == ast.IntValue && v.Definition != nil && v.Definition.Name == "ID":
		v.Kind = ast.StringValue
	case v.Kind == ast.IntValue, v.Kind == ast.FloatValue:
		if _, err := v.Value(nil); err != nil { // gqlgen would panic at it, whoever asks, with the number as the reason
			s.refuse(v, "a number is out of range")
		}
	}
	if t := v.ExpectedType; t != nil && t.Elem != nil && v.Kind != ast.ListValue && v.Kind != ast.Variable && v.Kind != ast.NullValue {
		one := *v
		one.ExpectedType = t.Elem
		*v = ast.Value{
			Kind: ast.ListValue, Children: ast.ChildValueList{{Value: &one, Position: v.Position}},
			Position: v.Position, Definition: v.Definition, ExpectedType: t, ExpectedTypeHasDefault: v.ExpectedTypeHasDefault,
		}
	}
}

func (s *settling) refuse(v *ast.Value, message string) {
	s.err = gqlerror.ErrorPosf(v.Position, "%s", message)
	s.err.Err = apierr.InvalidQuery.Error("%s", message)
}

// surrogate is an escape of half of a pair, once what is whole has been taken out: pairs, which the parser joins, and escaped
// backslashes. For halves without the other one the parser puts U+FFFD.
var (
	surrogate = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
	whole     = regexp.MustCompile(`\\[^u]|\\u[dD][89abAB]..\\u[dD][c-fC-F]..`)
)

// written is a value as the document has it, with its quotes.
func (s *settling) written(v *ast.Value) []rune {
	if s.text == nil {
		s.text = []rune(v.Position.Src.Input)
	}
	return s.text[min(v.Position.Start, len(s.text)):min(v.Position.End, len(s.text))]
}

// dedent removes the indent that the lines of a block string have in common, except the first line (section 2.9.4). The parser
// counts the text of the first line, too, unless the line is blank.
func (s *settling) dedent(v *ast.Value) {
	first, _, _ := strings.Cut(strings.TrimLeft(strings.TrimPrefix(string(s.written(v)), `"""`), " \t"), "\n")
	if strings.HasPrefix(first, "\r") || first == "" {
		return
	}
	lines, common := strings.Split(v.Raw, "\n"), -1
	for _, line := range lines[1:] {
		if text := strings.TrimLeft(line, " \t"); text != "" && (common < 0 || len(line)-len(text) < common) {
			common = len(line) - len(text)
		}
	}
	for i := range lines[1:] {
		lines[i+1] = lines[i+1][min(max(common, 0), len(lines[i+1])):]
	}
	v.Raw = strings.Join(lines, "\n")
}
