package fields

import (
	"time"

	"kith/graph/model"
)

var userConnection = Type{Name: "UserConnection", Fields: map[string]*Field{
	"edges":      {Ahead: Edges, Needs: Rows, Value: list(func(c *model.UserConnection) []*model.UserEdge { return c.Edges })},
	"nodes":      {Ahead: Item, Needs: Rows, Value: list(func(c *model.UserConnection) []*model.User { return c.Nodes })},
	"pageInfo":   {Needs: Rows, Value: object(func(c *model.UserConnection) *model.PageInfo { return c.PageInfo })},
	"totalCount": {Needs: Total, Value: number((*model.UserConnection).TotalCount)},
	"complete":   {Value: boolean(func(c *model.UserConnection) bool { return c.Complete })},
}}

var userEdge = Type{Name: "UserEdge", Fields: map[string]*Field{
	"cursor":     {Needs: Cursors, Value: text(func(e *model.UserEdge) string { return e.Cursor })},
	"node":       {Ahead: Item, Value: object(func(e *model.UserEdge) *model.User { return e.Node })},
	"followedAt": {Value: optionalMoment(func(e *model.UserEdge) *time.Time { return e.FollowedAt })},
}}

var pageInfo = Type{Name: "PageInfo", Fields: map[string]*Field{
	"hasNextPage":     {Value: boolean(func(p *model.PageInfo) bool { return p.HasNextPage })},
	"hasPreviousPage": {Value: boolean(func(p *model.PageInfo) bool { return p.HasPreviousPage })},
	"startCursor":     {Value: optionalText(func(p *model.PageInfo) *string { return p.StartCursor })},
	"endCursor":       {Value: optionalText(func(p *model.PageInfo) *string { return p.EndCursor })},
}}

var searchConnection = Type{Name: "UserSearchConnection", Fields: map[string]*Field{
	"edges":    {Ahead: Edges, Needs: Rows},
	"nodes":    {Ahead: Item, Needs: Rows},
	"pageInfo": {Needs: Rows},
}}

var searchEdge = Type{Name: "UserSearchEdge", Fields: map[string]*Field{
	"cursor": {Needs: Cursors, Value: text(func(e *model.UserSearchEdge) string { return e.Cursor })},
	"node":   {Ahead: Item, Value: object(func(e *model.UserSearchEdge) *model.User { return e.Node })},
}}

var suggestionConnection = Type{Name: "SuggestionConnection", Fields: map[string]*Field{
	"edges":    {Ahead: Edges, Needs: Rows},
	"nodes":    {Ahead: Item, Needs: Rows},
	"pageInfo": {Needs: Rows},
	"complete": {},
	"excluded": {},
}}

var suggestionEdge = Type{Name: "SuggestionEdge", Fields: map[string]*Field{
	"cursor":      {Needs: Cursors, Value: text(func(e *model.SuggestionEdge) string { return e.Cursor })},
	"node":        {Ahead: Item, Value: object(func(e *model.SuggestionEdge) *model.User { return e.Node })},
	"score":       {Value: decimal(func(e *model.SuggestionEdge) float64 { return e.Score })},
	"mutualCount": {Value: number(func(e *model.SuggestionEdge) (int32, error) { return e.MutualCount, nil })},
	"reason":      {Value: text(func(e *model.SuggestionEdge) model.SuggestionReason { return e.Reason })},
	"via":         {Ahead: Via},
}}

var suggestionExclusions = made("SuggestionExclusions", "followed", "blocked", "dismissed")

var friendRequestConnection = Type{Name: "FriendRequestConnection", Fields: map[string]*Field{
	"edges":      {Ahead: Edges, Needs: Rows},
	"nodes":      {Ahead: Item, Needs: Rows},
	"pageInfo":   {Needs: Rows},
	"totalCount": {Needs: Total},
	"complete":   {},
}}

var friendRequestEdge = Type{Name: "FriendRequestEdge", Fields: map[string]*Field{
	"cursor": {Needs: Cursors},
	"node":   {Ahead: Item},
}}
