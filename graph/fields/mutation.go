package fields

const (
	write    = 20 // a transaction or two
	bothEnds = 50 // a change that is propagated to the shards of both users at once, in up to three steps

	// Hashing a password takes memory and time on purpose: twenty hashes are more than one request
	// may ask for.
	hashing = 5000
)

var mutation = Type{Name: "Mutation", Fields: map[string]*Field{
	"follow":         {Weight: write},
	"unfollow":       {Weight: write},
	"followMany":     {Weight: 50},
	"followList":     {Weight: 550}, // 500 users, as followMany and their ids
	"importAccounts": {Weight: 400}, // 50 users, as followList and their handles, on up to 20 lists, and 100 rows
	"removeFollower": {Weight: write},

	"removeAccountsImport": {Weight: write},

	"block":          {Weight: bothEnds},
	"unblock":        {Weight: write},
	"setFollowMark":  {Weight: write},
	"mute":           {Weight: 2 * write},
	"relate":         {Weight: 50},
	"unrelate":       {Weight: 50},
	"unmute":         {Weight: 2 * write},
	"createList":     {Weight: 2 * write},
	"updateList":     {Weight: write},
	"deleteList":     {Weight: 10 * write}, // 500 members at a time
	"addToList":      {Weight: 50},
	"removeFromList": {Weight: 50},

	"requestFriend":       {Weight: bothEnds},
	"acceptRequest":       {Weight: bothEnds},
	"declineRequest":      {Weight: write},
	"withdrawRequest":     {Weight: write},
	"acceptRequests":      {Weight: 100 * bothEnds}, // as many as are on a page
	"removeFriend":        {Weight: bothEnds},
	"dismissSuggestion":   {Weight: write},
	"undismissSuggestion": {Weight: write},
	"reportUser":          {Weight: write},
	"reportPost":          {Weight: write},

	"publishPost":   {Weight: 4 * write}, // and whom it mentions
	"editPost":      {Weight: 4 * write},
	"deletePost":    {Weight: write},
	"addComment":    {Weight: write},
	"deleteComment": {Weight: write},
	"favorite":      {Weight: write},
	"unfavorite":    {Weight: write},
	"markFeedSeen":  {Weight: write},

	"markActivitySeen": {Weight: write},

	"register":          {Weight: hashing, Queued: true},
	"login":             {Weight: hashing, Queued: true},
	"renewToken":        {},
	"updateProfile":     {Weight: write},
	"deactivateAccount": {Weight: write},
	"reactivateAccount": {Weight: write},
	"deleteAccount":     {Weight: 100},
	"changePassword":    {Weight: hashing, Queued: true},
	"signOutEverywhere": {Weight: write},
	"linkIdentity":      {Weight: write},
	"unlinkIdentity":    {Weight: write},
	"createUser":        {},
	"setUserAttributes": {Weight: write},
	"suspendUser":       {Weight: write},
	"reinstateUser":     {Weight: write},
	"removePost":        {Weight: write},
	"removeComment":     {Weight: write},
}}

// Payloads hold what their mutations have made.
var (
	relationshipPayload   = made("RelationshipPayload", "changed", "viewer", "user", "relationship", "followingEdge", "followerEdge", "blockEdge", "muteEdge", "dismissedEdge", "undismissedUserId", "request", "requestEdge")
	acceptRequestsPayload = with(made("AcceptRequestsPayload", "viewer", "pageInfo"), map[string]*Field{"outcomes": {Length: 100}})
	followManyPayload     = made("FollowManyPayload", "viewer", "outcomes")
	listPayload           = made("ListPayload", "changed", "list", "viewer", "outcomes", "listEdge", "deletedListId")
	followListPayload     = with(made("FollowListPayload", "viewer", "pageInfo"), map[string]*Field{"outcomes": {Length: 500}})
	accountsImportPayload = made("AccountsImportPayload", "changed", "viewer", "accountsImport", "removedImportId")
	accountsImport        = with(made("AccountsImport", "id", "kind", "createdAt", "lineCount", "doneCount", "changedCount", "refusedCount", "continuesAt"), map[string]*Field{"refused": {Length: 100, Weight: 100}}) // a statement; up to 150 lines
	refusedLine           = made("RefusedLine", "line", "handle", "error")
	followOutcome         = made("FollowOutcome", "userId", "changed", "user", "relationship", "followingEdge", "followerEdge", "memberEdge", "requestEdge", "error")
	followError           = made("FollowError", "code", "reason", "argument", "retryAfter", "message")
	postPayload           = made("PostPayload", "changed", "post", "viewer", "postEdge", "deletedPostId")
	commentPayload        = made("CommentPayload", "changed", "comment", "post", "commentEdge", "deletedCommentId")
	favoritePayload       = made("FavoritePayload", "changed", "post", "viewer", "favoriteEdge")
	sessionPayload        = made("SessionPayload", "token", "expiresAt", "viewer")
	accountPayload        = made("AccountPayload", "changed", "viewer")
	changePasswordPayload = made("ChangePasswordPayload", "changed", "token", "expiresAt")
	deleteAccountPayload  = made("DeleteAccountPayload", "complete")
	userPayload           = made("UserPayload", "changed", "user")
)
