package social

import (
	"errors"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
)

// A Filter describes the wanted users. Exactly one of its fields is set: lists that they are
// on, or other filters.
type Filter struct {
	On  []List   // on every one of these lists
	All []Filter // all of them fit; negated filters need at least one beside them that is not
	Any []Filter // any of them fits
	Not *Filter  // does not fit; within All only

	Members *Members // on this list
}

// Members are the users on a list that a user has made. The Set is read before the filter is used, see [Graph.OnLists].
type Members struct {
	List storage.ListID
	Set  *idset.Set
}

// Bounds on a filter.
const (
	MaxFilterLists  = 16
	MaxFilterLevels = 8
)

// The errors of a filter. The texts are for clients.
var (
	ErrFilterEmpty  = errors.New("`and` and `or` take at least one filter")
	ErrFilterNot    = errors.New("`not` stands within an `and`, beside at least one filter without it: what fits nothing else would be nearly everybody")
	ErrFilterLists  = fmt.Errorf("a filter reads at most %d lists; friendsOf reads two", MaxFilterLists)
	ErrFilterLevels = fmt.Errorf("a filter has at most %d levels", MaxFilterLevels)
)

// Check returns an error if the filter is not valid.
func (f Filter) Check() error {
	if err := f.check(1, false); err != nil {
		return err
	}
	if len(f.Lists())+len(f.Made()) > MaxFilterLists {
		return ErrFilterLists
	}
	return nil
}

func (f Filter) check(level int, negatable bool) error {
	if level > MaxFilterLevels {
		return ErrFilterLevels
	}
	switch {
	case len(f.On) > 0 || f.Members != nil:
		return nil
	case f.Not != nil:
		if !negatable {
			return ErrFilterNot
		}
		return f.Not.check(level+1, false)
	}
	parts := slices.Concat(f.All, f.Any)
	if len(parts) == 0 {
		return ErrFilterEmpty
	}
	isPositive := func(p Filter) bool { return p.Not == nil }
	for _, p := range parts {
		if err := p.check(level+1, slices.ContainsFunc(f.All, isPositive)); err != nil {
			return err
		}
	}
	return nil
}

// Lists are all lists that a filter reads; not to be changed.
func (f Filter) Lists() []List {
	lists := slices.Clip(f.On)
	if f.Not != nil {
		lists = f.Not.Lists()
	}
	for _, p := range slices.Concat(f.All, f.Any) {
		lists = append(lists, p.Lists()...)
	}
	return lists
}

// Made are all lists that users have made and that a filter reads.
func (f Filter) Made() (made []*Members) {
	if f.Members != nil {
		made = append(made, f.Members)
	}
	if f.Not != nil {
		made = append(made, f.Not.Made()...)
	}
	for _, p := range slices.Concat(f.All, f.Any) {
		made = append(made, p.Made()...)
	}
	return made
}

// String writes equal filters in the same way: cursors are bound to the text.
func (f Filter) String() string {
	switch {
	case len(f.On) > 0:
		return fmt.Sprintf("on%s", f.On)
	case f.Members != nil:
		return fmt.Sprintf("list %d of %s", f.Members.List.Number, f.Members.List.Owner)
	case f.Not != nil:
		return fmt.Sprintf("not %s", f.Not)
	case len(f.Any) > 0:
		return fmt.Sprintf("any%s", f.Any)
	}
	return fmt.Sprintf("all%s", f.All)
}
