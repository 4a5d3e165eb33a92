package fields

import "kith/graph/model"

var relationship = Type{Name: "Relationship", Is: []string{"Node", "_Entity"}, Fields: map[string]*Field{
	"id":              {Value: &Value{Append: appendRelationshipID}},
	"from":            {Value: object(func(r *model.Relationship) *model.User { return r.From })},
	"to":              {Value: object(func(r *model.Relationship) *model.User { return r.To })},
	"status":          {Needs: Edge | Back | Inverse, Value: text((*model.Relationship).Status)},
	"following":       {Needs: Edge, Value: boolean((*model.Relationship).Following)},
	"followedBy":      {Needs: Back | Inverse, Value: boolean((*model.Relationship).FollowedBy)},
	"followedAt":      {Needs: Edge, Value: optionalMoment((*model.Relationship).FollowedAt)},
	"firstFollowedAt": {Needs: Edge | Mark, Value: optionalMoment((*model.Relationship).FirstFollowedAt)},
	"followedByAt":    {Needs: Back | Inverse, Value: optionalMoment((*model.Relationship).FollowedByAt)},
	"blocking":        {Needs: Edge, Value: optionalBoolean((*model.Relationship).Blocking)},
	"blockedBy":       {Needs: Back | Inverse, Value: optionalBoolean((*model.Relationship).BlockedBy)},

	"followRequested":   {Needs: Edge, Value: optionalBoolean((*model.Relationship).FollowRequested)},
	"followRequestedBy": {Needs: Back | Inverse, Value: optionalBoolean((*model.Relationship).FollowRequestedBy)},

	"special": {Needs: Mark, Value: optionalBoolean((*model.Relationship).Special)},
	"remark":  {Needs: Mark, Weight: 2, Value: optionalText((*model.Relationship).Remark)},

	"muted":      {Needs: Mute, Weight: 2, Value: optionalText((*model.Relationship).Muted)},
	"mutedUntil": {Needs: Mute, Value: optionalMoment((*model.Relationship).MutedUntil)},
	"attributes": {Needs: Mark, Weight: 10, Value: attributes((*model.Relationship).Attributes)},

	"sentRequest":     {Value: object(func(r *model.Relationship) *model.Request { return r.SentRequest })},
	"receivedRequest": {Needs: Inverse, Value: object(func(r *model.Relationship) *model.Request { return r.ReceivedRequest })},
}}

func appendRelationshipID(to []byte, v any) []byte {
	pair := v.(*model.Relationship).Pair
	to = appendInt(append(to, `"rel_`...), pair.From)
	return append(appendInt(append(to, '_'), pair.To), '"')
}

var request = Type{Name: "Request", Is: []string{"Node", "_Entity"}, Fields: map[string]*Field{
	"id":        {Value: text((*model.Request).ID)},
	"kind":      {Value: text((*model.Request).Kind)},
	"from":      {Value: object(func(r *model.Request) *model.User { return r.From })},
	"to":        {Value: object(func(r *model.Request) *model.User { return r.To })},
	"state":     {Value: text((*model.Request).State)},
	"message":   {Weight: 5, Value: optionalText((*model.Request).Message)},
	"updatedAt": {Value: moment((*model.Request).UpdatedAt)},
	"expiresAt": {Value: optionalMoment((*model.Request).ExpiresAt)},
}}
