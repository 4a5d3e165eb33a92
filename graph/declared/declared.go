// Package declared reads the file in which a product declares what it keeps for itself, and puts that into the schema.
package declared

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/storage"
)

// File is what a product declares. It must not be copied.
type File struct {
	Attributes Attributes          `yaml:"attributes"`
	Relations  map[string]Relation `yaml:"relations"`

	// ReservedHandles are handles that nobody gets by registering, in the place of Kith's own list; nil: that one.
	ReservedHandles []string `yaml:"reservedHandles"`

	kinds  map[string]Kind
	served sync.Once
	schema *ast.Schema
}

// Nothing is what a product without a file declares.
var Nothing = new(File)

// Attributes are what may be kept beside objects of four types, by name.
type Attributes struct {
	User   map[string]Attribute `yaml:"user"`
	Follow map[string]Attribute `yaml:"follow"`
	Post   map[string]Attribute `yaml:"post"`
	Edge   map[string]Attribute `yaml:"edge"` // of a declared kind
}

// attributes are those of each type of objects.
func (f *File) attributes() map[string]map[string]Attribute {
	return map[string]map[string]Attribute{"user": f.Attributes.User, "follow": f.Attributes.Follow, "post": f.Attributes.Post, "edge": f.Attributes.Edge}
}

// Attribute is one value.
type Attribute struct {
	Type        string `yaml:"type"`        // one of [types]
	MaxLength   int    `yaml:"maxLength"`   // of a String, in characters. Defaults to 200
	SetBy       string `yaml:"setBy"`       // [Owner] or [Operator]. Defaults to Owner
	Description string `yaml:"description"` // for readers of the schema
}

// Who sets an attribute.
const (
	Owner    = "owner"    // the user, or the author of the post, or who follows
	Operator = "operator" // whoever has a token with the scope admin
)

// Bounds on a file.
const (
	maxBytes       = 64 << 10
	maxNames       = 64  // of each type
	maxDescription = 500 // bytes
	defaultLength  = 200
)

var (
	types = []string{"String", "Int", "Float", "Boolean", "DateTime"}
	names = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,39}$`)
)

// Read reads a file; without a name, it declares nothing. The error is one line with the name of the file.
func Read(name string) (*File, error) {
	if name == "" {
		return Nothing, nil
	}
	text, err := ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := new(File)
	if err := f.parse(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// ReadFile reads a file of at most 64 KiB. The error is one line with the name of the file.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name) // a pipe would be waited for
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", name)
	case info.Size() > maxBytes:
		return nil, fmt.Errorf("%s: it has more than %d bytes", name, maxBytes)
	}
	return os.ReadFile(name)
}

// Decode reads YAML into a value. The error is one line, with the line of the text.
func Decode(text []byte, into any) error {
	err := yaml.UnmarshalWithOptions(text, into, yaml.Strict())
	var where yaml.Error
	switch {
	case errors.Is(err, io.EOF): // an empty file
		return nil
	case errors.As(err, &where):
		return fmt.Errorf("line %d: %s", where.GetToken().Position.Line, where.GetMessage())
	}
	return err
}

func (f *File) parse(text []byte) error {
	if err := Decode(text, f); err != nil {
		return err
	}
	for _, of := range []string{"user", "follow", "post", "edge"} {
		list := f.attributes()[of]
		if len(list) > maxNames {
			return fmt.Errorf("attributes.%s: there are %d names, %d is the most", of, len(list), maxNames)
		}
		for _, name := range slices.Sorted(maps.Keys(list)) {
			a := list[name]
			if err := a.check(name, of); err != nil {
				return fmt.Errorf("attributes.%s.%s: %w", of, name, err)
			}
			list[name] = a
		}
	}
	for i, handle := range f.ReservedHandles {
		if f.ReservedHandles[i] = storage.FoldHandle(handle); !storage.ValidHandle(f.ReservedHandles[i]) {
			return fmt.Errorf("reservedHandles: %.40q is no handle", handle)
		}
	}
	return f.checkRelations()
}

// check completes an attribute with its defaults.
func (a *Attribute) check(name, of string) error {
	switch {
	case !names.MatchString(name):
		return errors.New("a name is a small letter, and up to 39 letters and digits behind it")
	case !slices.Contains(types, a.Type):
		return fmt.Errorf("the type is one of %v", types)
	case a.Type != "String" && a.MaxLength != 0:
		return errors.New("only a String has a maxLength")
	case a.MaxLength < 0 || a.MaxLength > storage.MaxAttributes:
		return fmt.Errorf("maxLength is 1 to %d", storage.MaxAttributes)
	case a.SetBy != "" && a.SetBy != Owner && (a.SetBy != Operator || of != "user"):
		return errors.New("setBy is owner or, of a user, operator")
	case len(a.Description) > maxDescription:
		return fmt.Errorf("the description has more than %d bytes", maxDescription)
	}
	if a.Type == "String" && a.MaxLength == 0 {
		a.MaxLength = defaultLength
	}
	return nil
}
