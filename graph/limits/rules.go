package limits

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
)

// weights are the fields that take more work than a value of a row already at
// hand, as "Type.field". A test holds them against the schema.
var weights = map[string]uint64{
	"User.followings":     2,
	"User.followers":      2,
	"User.blockedUsers":   2,
	"User.friendRequests": 2,

	// Set algebra reads up to thousands of rows for a page: a quarter of a millisecond without
	// caches where users follow 50, as long as 130 plain values take.
	"User.friends":          100,
	"User.notFollowingBack": 100,
	"User.notFollowedBack":  100,
	"User.commonFollowings": 100,
	"User.commonFollowers":  100,
	"User.followersYouKnow": 100,

	// Values that are longer than others: about a unit for every hundred bytes.
	"User.bio":              10,
	"User.avatarUrl":        5,
	"FriendRequest.message": 5,
	"Relationship.remark":   2,

	// Up to 16 lists; handles in steps, of all shards.
	"Query.people":      200,
	"Query.searchUsers": 20,

	// Friends of friends: the lists of all followings, also for a page of nobody. One takes 1 ms
	// there, and 8 ms where users follow more.
	"User.followSuggestions": 1500,

	// A write is a transaction or two.
	"Mutation.follow":         20,
	"Mutation.unfollow":       20,
	"Mutation.removeFollower": 20,
	"Mutation.followMany":     50,

	// A change between two users is brought to both of their shards at once, in up to three steps.
	"Mutation.block":               50,
	"Mutation.unblock":             20,
	"Mutation.setFollowMark":       20,
	"Mutation.requestFriend":       50,
	"Mutation.acceptFriend":        50,
	"Mutation.declineFriend":       20,
	"Mutation.cancelFriendRequest": 20,
	"Mutation.removeFriend":        50,
	"Mutation.dismissSuggestion":   20,
	"Mutation.deactivateAccount":   20,
	"Mutation.reactivateAccount":   20,
	"Mutation.deleteAccount":       100,

	// Hashing a password takes memory and time on purpose: twenty of them are more
	// than one request may ask for.
	"Mutation.register":       5000,
	"Mutation.login":          5000,
	"Mutation.changePassword": 5000,
}

// fixed are lists whose lengths are known beforehand.
var fixed = map[string]uint64{
	"Consistency.modes":     3,
	"ReconcileStatus.kinds": 6,
}

// kind says how a field's cost depends on what is selected below it.
type kind uint8

const (
	plain kind = iota // a value or an object
	list              // a list whose length the field tells
	page              // a connection, or a payload with outcomes
	item              // `edges` or `nodes` of a connection, or `outcomes`, as many as the page has
)

type rule struct {
	kind   kind
	weight uint64
	inputs []input                                 // the arguments that have a size
	length func(*ast.Field, map[string]any) uint64 // of a list or page
}

// costs are the rules of one schema.
type costs struct {
	rules map[*ast.FieldDefinition]rule
}

// costsOf reads the rules off a schema, so that a new field needs no entry here:
//
//   - an object with `pageInfo` is a connection; its `edges` and `nodes` are as
//     long as `first` or `last` of the field that returns it says;
//   - a list with `first` or `last` is so long, too;
//   - the `outcomes` of a payload are as many as the field that returns it is given
//     list arguments;
//   - a list of what is named by lists of arguments (`ids`, `from` × `to`) is as
//     long as their lengths multiplied;
//   - a few lists are as long as something in the program (see [fixed]);
//   - the lists of introspection are as long as they are in this schema.
//
// Any other list is an error: nothing would tell what it may cost. So is an argument that
// takes texts without a bound (see [maxBytes]).
func costsOf(schema *ast.Schema) (costs, error) {
	c := costs{rules: make(map[*ast.FieldDefinition]rule)}
	lengths := introspectionLengths(schema)
	inputs := inputsOf{schema, make(map[string]map[string]*input)}
	for _, definition := range schema.Types {
		if definition.Kind != ast.Object && definition.Kind != ast.Interface {
			continue
		}
		for _, field := range definition.Fields {
			name := definition.Name + "." + field.Name
			r, ok := ruleOf(schema, definition, field, max(lengths[name], fixed[name]))
			if !ok {
				return costs{}, fmt.Errorf("field %s returns a list of unknown length: give it the argument first, or a list of ids", name)
			}
			r.weight = max(1, weights[name])
			var err error
			if r.inputs, err = inputs.arguments(name, field.Arguments); err != nil {
				return costs{}, err
			}
			for i := range r.inputs {
				r.inputs[i].counts = r.kind == plain || r.inputs[i].fields != nil
			}
			c.rules[field] = r
		}
	}
	return c, nil
}

func ruleOf(schema *ast.Schema, parent *ast.Definition, field *ast.FieldDefinition, length uint64) (rule, bool) {
	lists := listArguments(field)
	switch {
	case isConnection(schema.Types[field.Type.Name()]):
		return rule{kind: page, length: pageLength}, true
	case hasOutcomes(schema.Types[field.Type.Name()]) && len(lists) > 0:
		return rule{kind: page, length: lengthOfArguments(lists)}, true
	case !isList(field.Type):
		return rule{kind: plain}, true
	case isConnection(parent) && (field.Name == "edges" || field.Name == "nodes"),
		hasOutcomes(parent) && field.Name == "outcomes":
		return rule{kind: item}, true
	case isSliced(field):
		return rule{kind: list, length: pageLength}, true
	case len(lists) > 0:
		return rule{kind: list, length: lengthOfArguments(lists)}, true
	case length > 0:
		return rule{kind: list, length: func(*ast.Field, map[string]any) uint64 { return length }}, true
	}
	return rule{}, false
}

func isConnection(d *ast.Definition) bool { return d != nil && d.Fields.ForName("pageInfo") != nil }

func hasOutcomes(d *ast.Definition) bool { return d != nil && d.Fields.ForName("outcomes") != nil }

func isList(t *ast.Type) bool { return t.Elem != nil }

func isSliced(field *ast.FieldDefinition) bool {
	return field.Arguments.ForName("first") != nil || field.Arguments.ForName("last") != nil
}

func listArguments(field *ast.FieldDefinition) []string {
	var names []string
	for _, arg := range field.Arguments {
		if isList(arg.Type) {
			names = append(names, arg.Name)
		}
	}
	return names
}

// introspectionLengths tells how long the lists of introspection are in this
// schema: all types, all directives, and for the rest the mean, rounded up. The
// means are right where all types are gone through, and validation lets lists
// of types nest only twice.
func introspectionLengths(schema *ast.Schema) map[string]uint64 {
	var fields, interfaces, possible, enums, inputs, fieldArgs, directiveArgs, locations int
	for name, d := range schema.Types {
		if d.Kind == ast.InputObject {
			inputs += len(d.Fields)
		} else {
			fields += len(d.Fields)
		}
		for _, f := range d.Fields {
			fieldArgs += len(f.Arguments)
		}
		interfaces += len(d.Interfaces)
		enums += len(d.EnumValues)
		possible += len(schema.PossibleTypes[name])
	}
	for _, d := range schema.Directives {
		directiveArgs += len(d.Arguments)
		locations += len(d.Locations)
	}
	mean := func(total, count int) uint64 { return uint64(total/max(1, count)) + 1 }
	types, directives := len(schema.Types), len(schema.Directives)
	return map[string]uint64{
		"__Schema.types":        uint64(types),
		"__Schema.directives":   uint64(max(1, directives)),
		"__Type.fields":         mean(fields, types),
		"__Type.interfaces":     mean(interfaces, types),
		"__Type.possibleTypes":  mean(possible, types),
		"__Type.enumValues":     mean(enums, types),
		"__Type.inputFields":    mean(inputs, types),
		"__Field.args":          mean(fieldArgs, fields),
		"__Directive.args":      mean(directiveArgs, directives),
		"__Directive.locations": mean(locations, directives),
	}
}
