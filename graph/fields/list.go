package fields

import "kith/graph/model"

var listType = Type{Name: "List", Is: []string{"Node", "_Entity"}, Fields: with(made("", "id", "name", "public", "createdAt", "owner"), map[string]*Field{
	"has":         {Weight: 2},
	"memberCount": {Weight: pageOfList},
	"members":     {Weight: pageOfList},
}).Fields}

var (
	listConnection = pageOf("ListConnection", (*model.ListConnection).Plain)
	listEdge       = edgeOf("ListEdge", func(e *model.ListEdge) (string, *model.List) { return e.Cursor, e.Node })
)
