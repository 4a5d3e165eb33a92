package resolvers

import (
	"context"

	"kith/graph/model"
	"kith/graph/selections"
	"kith/resolvers/prefetch"
	"kith/storage"
)

// readAhead are the fields that are read before their resolvers run.
var readAhead = selections.Reads{
	"Query": {
		"viewer": viewerField, "user": usersField, "users": usersField, "node": nodesField, "nodes": nodesField, "_entities": entitiesField,
		"relationship": relationshipsField, "relationships": relationshipsField,
	},
	"User": {
		"followings": plainList(storage.Forward), "followers": plainList(storage.Inverse),
		"friends": friends, "notFollowingBack": notFollowingBack, "notFollowedBack": notFollowedBack,
		"commonFollowings": commonList(storage.Forward), "commonFollowers": commonList(storage.Inverse), "followersYouKnow": followersYouKnow,
		"followSuggestions": followSuggestions, "similarUsers": similarUsers, "edges": edgesOfKind,
		"relationship": relationshipTo, "viewerRelationship": viewerRelationship, "isViewer": viewerAmong,
		"posts": &userPosts, "favorites": &userFavorites, "lists": &userLists,
	},
	"Relationship": {
		"from": relationshipEnd(storage.Forward), "to": relationshipEnd(storage.Inverse),
		"sentRequest": requestField(storage.Requests), "receivedRequest": requestField(storage.Inbox),
	},
	"Request":        {"from": requestFrom, "to": requestTo, "message": requestMessage},
	"Post":           {"author": postAuthor, "comments": &postComments, "favoritedBy": &favoritedBy},
	"Comment":        {"author": commentAuthor},
	"Activity":       {"actors": activityActors, "post": activityPost},
	"List":           {"owner": listOwner, "has": listHas, "members": listMembers, "memberCount": listMembers},
	"SuggestionEdge": {"via": recommendedBy},
}

// nodeType is a type of nodes whose ids are two numbers behind a prefix; those of a user are one, without a prefix.
type nodeType struct {
	name, prefix string
	ask          func(ctx context.Context, level *prefetch.Level, ids []nodeID, on []*selections.Object)
	// show makes a node, which has been fetched; nil if the viewer does not see it, or with an error at its paths.
	show func(ctx context.Context, id nodeID, on []*selections.Object, at prefetch.Paths) model.Node
}

// nodeTypes are all of them.
var nodeTypes = []nodeType{
	{"User", "", askUserNodes, func(ctx context.Context, id nodeID, on []*selections.Object, at prefetch.Paths) model.Node {
		return orNil(usersOf(ctx, prefetch.Users{IDs: []storage.UserID{id.user()}, Exist: true, On: on}, at))
	}},
	{"Relationship", "rel_", askRelationshipNodes, func(ctx context.Context, id nodeID, on []*selections.Object, at prefetch.Paths) model.Node {
		return orNil(relationshipsOf(ctx, []storage.Pair{id.numbers}, on, at))
	}},
	{"Request", "req_", askRequestNodes, showRequestNode},
	{"Request", "wait_", askRequestNodes, showRequestNode},
	{"List", "list_", askListNodes, showListNode},         // the owner, and the number of the list
	{"Post", "post_", askPostNodes, showPostNode},         // the author, and the number of the post
	{"Comment", "cmt_", askCommentNodes, showCommentNode}, // the author of the post, and the number of the comment
}
