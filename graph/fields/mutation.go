package fields

const (
	write    = 20 // a transaction or two
	bothEnds = 50 // a change that is propagated to the shards of both users at once, in up to three steps

	// Hashing a password takes memory and time on purpose: twenty hashes are more than one request
	// may ask for.
	hashing = 5000
)

var mutation = with(alike("Mutation", Field{Weight: write},
	"follow", "unfollow", "removeFollower", "removeAccountsImport", "unblock", "setFollowMark", "updateList",
	"declineRequest", "withdrawRequest", "dismissSuggestion", "undismissSuggestion", "reportUser", "reportPost",
	"deletePost", "addComment", "deleteComment", "favorite", "unfavorite", "markFeedSeen", "markActivitySeen",
	"updateProfile", "deactivateAccount", "reactivateAccount", "signOutEverywhere",
	"linkIdentity", "unlinkIdentity", "setUserAttributes", "suspendUser", "reinstateUser", "removePost", "removeComment",
), map[string]*Field{
	"followMany":     {Weight: 50},
	"followList":     {Weight: 550, Length: 500}, // as followMany and its ids
	"importAccounts": {Weight: 400},              // 50 users, as followList and their handles, on up to 20 lists, and 100 rows

	"block":          {Weight: bothEnds},
	"mute":           {Weight: 2 * write},
	"unmute":         {Weight: 2 * write},
	"relate":         {Weight: 50},
	"unrelate":       {Weight: 50},
	"createList":     {Weight: 2 * write},
	"deleteList":     {Weight: 10 * write}, // 500 members at a time
	"addToList":      {Weight: 50},
	"removeFromList": {Weight: 50},

	"requestFriend":  {Weight: bothEnds},
	"acceptRequest":  {Weight: bothEnds},
	"acceptRequests": {Weight: 100 * bothEnds}, // as many as are on a page
	"removeFriend":   {Weight: bothEnds},

	"publishPost": {Weight: 4 * write}, // and whom it mentions
	"editPost":    {Weight: 4 * write},

	"register":       {Weight: hashing, Queued: true},
	"login":          {Weight: hashing, Queued: true},
	"renewToken":     {},
	"deleteAccount":  {Weight: 100},
	"changePassword": {Weight: hashing, Queued: true},
	"createUser":     {},
})

var accountsImport = with(made("AccountsImport", "id", "kind", "createdAt", "lineCount", "doneCount", "changedCount", "refusedCount", "continuesAt"), map[string]*Field{"refused": {Length: 100, Weight: 100}}) // a statement; up to 150 lines
