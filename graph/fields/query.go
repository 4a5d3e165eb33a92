package fields

import "kith/graph/model"

var query = with(made("Query", "viewer", "node", "nodes", "user", "users", "relationship", "relationships", "_entities", "consistency"), map[string]*Field{
	"_service": {Weight: 300}, // a long text

	"edgesTo":     {Weight: 300},           // whose rows tell who is seen
	"latestPosts": {Weight: 200},           // of all shards, with their texts
	"people":      {Weight: 200},           // up to 16 lists
	"edgesAmong":  {Weight: 500, Each: 12}, // up to 2,000 lists
	"searchUsers": {Weight: 34_000},        // 30 ms, with caches and without: 7,000 users by name, their counts, and lists of 128 followings

	"moderationLog": {Weight: 300}, // of all shards, as the latest posts
})

var (
	moderationConnection = pageOf("ModerationConnection", (*model.ModerationConnection).Plain)
	moderationEdge       = edgeOf("ModerationEdge", func(e *model.ModerationEdge) (string, *model.ModerationEntry) { return e.Cursor, e.Node })
	moderationEntry      = made("ModerationEntry", "at", "by", "action", "userId", "postId", "commentId", "reason", "until")
)

var (
	edgesAmong      = with(made("EdgesAmong", "complete"), map[string]*Field{"followings": {Length: 2000}})
	consistency     = with(made("Consistency", "lastFullScanAt"), map[string]*Field{"modes": {Length: 3}})
	reconcileStatus = with(made("ReconcileStatus", "mode", "at", "oldestUnpairedSeconds"), map[string]*Field{"kinds": {Length: 6}})
)

var subscription = with(made("Subscription", "relationshipChanged", "requestChanged", "followerAdded", "favoriteAdded", "commentAdded"), map[string]*Field{
	// What is read for each event, as the field reads it; of the members of a list, up to 5,000, as much as leaves room for a selection.
	"postAdded":     {Weight: feedPage, Chosen: 500},
	"activityAdded": {Weight: activityPage},

	"changes": {Weight: 300}, // of all shards, from their logs
})

var changeEvent = with(made("ChangeEvent", "eventId", "source", "kind", "subject", "time", "cursor"), map[string]*Field{"data": {Weight: 10}})
