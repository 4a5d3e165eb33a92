package fields

import (
	"time"

	"kith/graph/model"
)

var activity = Type{Name: "Activity", Fields: map[string]*Field{
	"id":          {Value: text(func(a *model.Activity) string { return a.ID })},
	"kind":        {Value: text(func(a *model.Activity) model.ActivityKind { return a.Kind })},
	"day":         {Value: moment(func(a *model.Activity) time.Time { return a.Day })},
	"at":          {Value: moment(func(a *model.Activity) time.Time { return a.At })},
	"actors":      {Length: 3, Value: list(func(a *model.Activity) []*model.User { return a.Actors })},
	"othersCount": {Value: number(func(a *model.Activity) (int32, error) { return a.OthersCount, nil })},
	"complete":    {Value: boolean(func(a *model.Activity) bool { return a.Complete })},
	"post":        {Value: object(func(a *model.Activity) *model.Post { return a.Post })},
}}

var (
	activityConnection = with(pageOf("ActivityConnection", (*model.ActivityConnection).Plain), map[string]*Field{"unseen": {Weight: 10}})
	activityEdge       = edgeOf("ActivityEdge", func(e *model.ActivityEdge) (string, *model.Activity) { return e.Cursor, e.Node })
)
