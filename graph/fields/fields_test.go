package fields_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/fields"
	"kith/graph/generated"
	"kith/internal/check"
)

// Each field has an entry with its needs, its cost and the way in which it is written.
func TestEveryFieldOfTheSchemaHasAnEntryAndNoOtherHas(t *testing.T) {
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	for name, d := range schema.Types {
		if d.Kind != ast.Object && d.Kind != ast.Interface || strings.HasPrefix(name, "__") {
			continue
		}
		for _, f := range d.Fields {
			check.That(t, fields.Of(name, f.Name) != nil || strings.HasPrefix(f.Name, "__"), "%s.%s is in the schema and has no entry in kith/graph/fields", name, f.Name)
		}
	}
	for name, table := range fields.Types {
		for field := range table.Fields {
			d := schema.Types[name]
			check.That(t, d != nil && d.Fields.ForName(field) != nil, "%s.%s has an entry and is not in the schema", name, field)
		}
	}
}

// Each value is written in one way, and everything below an object can be written.
func TestValuesAreWrittenOneWay(t *testing.T) {
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	for name, table := range fields.Types {
		for field, f := range table.Fields {
			if f.Value == nil {
				continue
			}
			kind := schema.Types[name].Fields.ForName(field).Type
			below := fields.Types[kind.Name()]
			v := f.Value
			switch isObject, isList := below != nil, kind.Elem != nil; {
			case (v.Append != nil) == isObject, (v.Object != nil) != (isObject && !isList), (v.Len != nil) != isList, (v.At != nil) != isList:
				t.Errorf("%s.%s is a %s, and is not written as one", name, field, kind)
			}
		}
	}
}

// TestConnectionsFollowOneRule: a connection has edges, nodes and pageInfo, an edge a cursor and a node, and what else an edge says is
// never null. Lists that are counted say whether the count is complete.
func TestConnectionsFollowOneRule(t *testing.T) {
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	connections := 0
	for name, d := range schema.Types {
		if !strings.HasSuffix(name, "Connection") {
			continue
		}
		connections++
		for _, field := range []string{"edges", "nodes", "pageInfo"} {
			check.That(t, d.Fields.ForName(field) != nil, "%s has no %s", name, field)
		}
		counted, complete := d.Fields.ForName("totalCount") != nil, d.Fields.ForName("complete") != nil
		check.That(t, !counted || complete, "%s has totalCount without complete", name)
		edge := schema.Types[d.Fields.ForName("edges").Type.Name()]
		if !strings.HasSuffix(edge.Name, "Edge") || edge.Fields.ForName("cursor") == nil || edge.Fields.ForName("node") == nil {
			t.Errorf("%s: edges of %s", name, edge.Name)
		}
		if node := schema.Types[edge.Fields.ForName("node").Type.Name()]; !slices.Contains([]string{"ModerationEntry", "Activity"}, node.Name) && !slices.Contains(node.Interfaces, "Node") {
			t.Errorf("%s has nodes of %s, which is no Node", name, node.Name)
		}
		for _, f := range edge.Fields {
			if f.Name != "node" && !slices.Contains([]string{"RelationEdge.until", "RelationEdge.attributes"}, edge.Name+"."+f.Name) && !f.Type.NonNull && f.Type.Elem == nil {
				t.Errorf("%s.%s may be null", edge.Name, f.Name)
			}
		}
	}
	check.That(t, connections >= 10, "%d connections", connections)
}
