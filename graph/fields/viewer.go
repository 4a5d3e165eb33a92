package fields

import (
	"kith/graph/model"
	"kith/storage"
)

// feedPage and activityPage are the weights of a page of these, and of what is read of them for an event.
const feedPage, activityPage = 40, 200

var viewer = Type{Name: "Viewer", Fields: map[string]*Field{
	"id":           {Value: text((*model.Viewer).ID)},
	"user":         {Value: object(func(v *model.Viewer) *model.User { return v.User })},
	"discoverable": {Needs: Row, Value: boolean((*model.Viewer).Discoverable)},

	"feedSeenUpTo": {Weight: 10}, // a statement
	// The viewer's whole list, and what is new. Of a list, up to 5,000 members are read. Behind the posts in memory a page takes up to
	// 10,000 look-ups more, whatever it weighs: all feeds of a request have one allowance for them (social/feed.go).
	"feed": {Weight: feedPage, Chosen: audience},
	// A day is read at a time, of six lists, until a page and what is new have been found.
	"activity":        {Needs: Inverse, Weight: activityPage},
	"blockedUsers":    {Weight: pageOfList},
	"mutedUsers":      {Weight: pageOfList},
	"edge":            {Weight: 10},
	"requests":        {Needs: Inverse, Weight: pageOfList},
	"dismissedUsers":  {Weight: pageOfList},
	"accountsFile":    {Weight: 1000},                                 // 500 users, of up to 20 lists
	"accountsImports": {Length: storage.MaxImports, Weight: 500},      // up to 500 rows
	"lists":           {Length: storage.MaxLists, Weight: pageOfList}, // as many edges are looked up
	"standing":        {Weight: 10},                                   // a statement
	"identities":      {Length: storage.MaxIdentities, Weight: 20},    // every shard is asked
}}
