package direct

import (
	"time"

	"kith/graph/model"
)

// objectType is the table of a type: its fields that are values at hand.
type objectType struct {
	name      string
	satisfies []string // the type and its interfaces, as fragments name them
	fields    map[string]*field
}

// field is one of them: a value, an object, or a list of objects.
type field struct {
	append func(to []byte, v any) []byte
	fails  func(v any) bool // whether it could not be loaded; nil: never

	of          func() *objectType // of objects
	appendBelow func(to []byte, v any, below *plan, most int) []byte
	anyBelow    func(v any, is func(any) bool) bool
}

// typeOf is the table of a value's type, nil where there is none.
func typeOf(v any) *objectType {
	switch v.(type) {
	case *model.User:
		return userType
	case *model.UserEdge:
		return userEdgeType
	case *model.UserConnection:
		return userConnectionType
	case *model.PageInfo:
		return pageInfoType
	case *model.Relationship:
		return relationshipType
	case *model.SuggestionEdge:
		return suggestionEdgeType
	case *model.UserSearchEdge:
		return searchEdgeType
	}
	return nil
}

// isNil tells whether an object is null.
func isNil(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case *model.User:
		return v == nil
	case *model.UserEdge:
		return v == nil
	case *model.UserConnection:
		return v == nil
	case *model.PageInfo:
		return v == nil
	case *model.Relationship:
		return v == nil
	case *model.SuggestionEdge:
		return v == nil
	case *model.UserSearchEdge:
		return v == nil
	}
	return false
}

var userType = &objectType{name: "User", satisfies: []string{"User", "Node"}, fields: map[string]*field{
	"id":        {append: func(to []byte, v any) []byte { return appendID(to, v.(*model.User).UserID) }},
	"handle":    text((*model.User).Handle),
	"name":      text((*model.User).Name),
	"bio":       optionalText((*model.User).Bio),
	"avatarUrl": optionalText((*model.User).AvatarURL),
	"createdAt": moment((*model.User).CreatedAt),
	"followingCount": {
		append: func(to []byte, v any) []byte {
			return appendInt(to, int64(int32(v.(*model.User).Counts.Value.Following)))
		},
		fails: func(v any) bool { return v.(*model.User).Counts.Err != nil },
	},
	"followerCount": {
		append: func(to []byte, v any) []byte {
			return appendInt(to, int64(int32(v.(*model.User).Counts.Value.Follower)))
		},
		fails: func(v any) bool { return v.(*model.User).Counts.Err != nil },
	},
}}

var userEdgeType = &objectType{name: "UserEdge", satisfies: []string{"UserEdge"}, fields: map[string]*field{
	"cursor":     text(func(e *model.UserEdge) string { return e.Cursor }),
	"followedAt": optionalMoment(func(e *model.UserEdge) *time.Time { return e.FollowedAt }),
	"node":       object(func() *objectType { return userType }, func(e *model.UserEdge) *model.User { return e.Node }),
}}

var userConnectionType = &objectType{name: "UserConnection", satisfies: []string{"UserConnection"}, fields: map[string]*field{
	"edges":    list(func() *objectType { return userEdgeType }, func(c *model.UserConnection) []*model.UserEdge { return c.Edges }),
	"nodes":    list(func() *objectType { return userType }, func(c *model.UserConnection) []*model.User { return c.Nodes }),
	"pageInfo": object(func() *objectType { return pageInfoType }, func(c *model.UserConnection) *model.PageInfo { return c.PageInfo }),
	"complete": boolean(func(c *model.UserConnection) bool { return c.Complete }),
	"totalCount": {
		append: func(to []byte, v any) []byte {
			return appendInt(to, int64(int32(v.(*model.UserConnection).Total.Value)))
		},
		fails: func(v any) bool { return v.(*model.UserConnection).Total.Err != nil },
	},
}}

var pageInfoType = &objectType{name: "PageInfo", satisfies: []string{"PageInfo"}, fields: map[string]*field{
	"hasNextPage":     boolean(func(p *model.PageInfo) bool { return p.HasNextPage }),
	"hasPreviousPage": boolean(func(p *model.PageInfo) bool { return p.HasPreviousPage }),
	"startCursor":     optionalText(func(p *model.PageInfo) *string { return p.StartCursor }),
	"endCursor":       optionalText(func(p *model.PageInfo) *string { return p.EndCursor }),
}}

var relationshipType = &objectType{name: "Relationship", satisfies: []string{"Relationship", "Node"}, fields: map[string]*field{
	"id": {append: func(to []byte, v any) []byte {
		r := v.(*model.Relationship)
		to = append(to, `"rel_`...)
		to = appendInt(to, int64(r.Pair.From))
		to = append(to, '_')
		return append(appendInt(to, int64(r.Pair.To)), '"')
	}},
	"from":         object(func() *objectType { return userType }, func(r *model.Relationship) *model.User { return r.From }),
	"to":           object(func() *objectType { return userType }, func(r *model.Relationship) *model.User { return r.To }),
	"status":       text(func(r *model.Relationship) string { return string(r.Status()) }),
	"following":    boolean((*model.Relationship).Following),
	"followedBy":   boolean((*model.Relationship).FollowedBy),
	"followedAt":   optionalMoment((*model.Relationship).FollowedAt),
	"followedByAt": optionalMoment((*model.Relationship).FollowedByAt),
	"blocking":     optionalBoolean((*model.Relationship).Blocking),
	"blockedBy":    optionalBoolean((*model.Relationship).BlockedBy),
}}

var suggestionEdgeType = &objectType{name: "SuggestionEdge", satisfies: []string{"SuggestionEdge"}, fields: map[string]*field{
	"cursor":      text(func(e *model.SuggestionEdge) string { return e.Cursor }),
	"node":        object(func() *objectType { return userType }, func(e *model.SuggestionEdge) *model.User { return e.Node }),
	"score":       {append: func(to []byte, v any) []byte { return appendFloat(to, v.(*model.SuggestionEdge).Score) }},
	"mutualCount": {append: func(to []byte, v any) []byte { return appendInt(to, int64(v.(*model.SuggestionEdge).MutualCount)) }},
	"reason":      text(func(e *model.SuggestionEdge) string { return string(e.Reason) }),
}}

var searchEdgeType = &objectType{name: "UserSearchEdge", satisfies: []string{"UserSearchEdge"}, fields: map[string]*field{
	"cursor": text(func(e *model.UserSearchEdge) string { return e.Cursor }),
	"node":   object(func() *objectType { return userType }, func(e *model.UserSearchEdge) *model.User { return e.Node }),
}}
