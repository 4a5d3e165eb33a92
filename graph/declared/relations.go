package declared

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Relation is a kind of relations that a product declares. The key of the file is its name.
type Relation struct {
	Number      int64  `yaml:"number"`      // how the store knows the kind: never changed, and never used again
	To          string `yaml:"to"`          // what the edges lead to: User, the default, or the name of something that the product has
	Max         int64  `yaml:"max"`         // how many edges may leave a user. Defaults to 5,000
	Seen        string `yaml:"seen"`        // by whom: owner, ends or everyone. Defaults to owner
	Peace       bool   `yaml:"peace"`       // there is no new edge while one of its two ends blocks the other
	Ends        bool   `yaml:"ends"`        // an edge may have an end
	Description string `yaml:"description"` // for readers of the schema
}

// FirstKind and LastKind are the numbers that products may give their kinds.
const FirstKind, LastKind int64 = 100, 999

const (
	defaultMax = 5_000
	mostMax    = 1_000_000
)

var (
	things = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,39}$`)
	humps  = regexp.MustCompile(`[A-Z]`)
)

// Kinds are the declared kinds, by their values in the schema: `follows2` is FOLLOWS2, and `goesTo` GOES_TO.
// They must not be changed.
func (f *File) Kinds() map[string]Kind { return f.kinds }

func (r Relation) kind(name string) Kind {
	k := Kind{
		Number: r.Number, Name: name, Max: cmp.Or(r.Max, defaultMax), Peace: r.Peace, Timed: r.Ends, Public: r.Seen == "everyone", BothEnds: r.Seen == "ends",
	}
	if r.To != "User" {
		k.To = r.To
	}
	return k
}

func valueOf(name string) string { return strings.ToUpper(humps.ReplaceAllString(name, "_$0")) }

func (f *File) kindValues() map[string]Attribute {
	values := make(map[string]Attribute, len(f.Relations))
	for name, r := range f.Relations {
		values[valueOf(name)] = Attribute{Description: r.Description}
	}
	return values
}

func (f *File) checkRelations() error {
	if len(f.Relations) > maxNames {
		return fmt.Errorf("relations: there are %d names, %d is the most", len(f.Relations), maxNames)
	}
	numbers := make(map[int64]string)
	f.kinds = make(map[string]Kind, len(f.Relations))
	for _, name := range slices.Sorted(maps.Keys(f.Relations)) {
		r := f.Relations[name]
		err := r.check(name)
		if other, same := numbers[r.Number]; same && err == nil {
			err = fmt.Errorf("%s has the number %d, too", other, r.Number)
		}
		if other, same := f.kinds[valueOf(name)]; same && err == nil {
			err = fmt.Errorf("%s is %s in the schema, too", other.Name, valueOf(name))
		}
		if err != nil {
			return fmt.Errorf("relations.%s: %w", name, err)
		}
		numbers[r.Number], f.kinds[valueOf(name)] = name, r.kind(name)
	}
	return nil
}

func (r Relation) check(name string) error {
	switch {
	case !names.MatchString(name):
		return errors.New("a name is a small letter, and up to 39 letters and digits behind it")
	case r.Number < FirstKind || r.Number > LastKind:
		return fmt.Errorf("the number is %d to %d", FirstKind, LastKind)
	case r.To != "" && !things.MatchString(r.To):
		return errors.New("to is User, or a capital letter and up to 39 letters and digits behind it")
	case r.Max < 0 || r.Max > mostMax:
		return fmt.Errorf("max is 1 to %d", mostMax)
	case !slices.Contains([]string{"", "owner", "ends", "everyone"}, r.Seen):
		return errors.New("seen is owner, ends or everyone")
	case r.To != "" && r.To != "User" && (r.Peace || r.Seen == "ends"):
		return errors.New("only users block and see: peace, and seen: ends, are for edges to users")
	case len(r.Description) > maxDescription:
		return fmt.Errorf("the description has more than %d bytes", maxDescription)
	}
	return nil
}
