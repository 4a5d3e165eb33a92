package resolvers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/accounts/identity"
	"kith/files/changes"
	"kith/graph/apierr"
	"kith/graph/model"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/logged"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/resolvers"
	"kith/storage"
	"kith/storage/sqlstore"
)

const subscribeToChanges = `subscription($after: String, $kinds: [ChangeKind!]) { changes(after: $after, kinds: $kinds) { eventId source kind subject time data cursor } }`

// change is an answer of that, or why there is none.
type change struct {
	model.ChangeEvent
	text string
}

func (c change) is(kind model.ChangeKind) bool { return c.Kind != nil && *c.Kind == kind }

func nextChange(t *testing.T, answers <-chan string) (c change) {
	t.Helper()
	select {
	case c.text = <-answers:
	case <-time.After(time.Minute):
		t.Fatal("nothing comes")
	}
	var answer struct {
		Data struct{ Changes model.ChangeEvent }
	}
	_ = json.Unmarshal([]byte(c.text), &answer) // the end of a stream is no answer
	c.ChangeEvent = answer.Data.Changes
	return c
}

func newLoggedStore(t *testing.T) *sqlstore.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 1)})
}

func cursorOf(t *testing.T, store *sqlstore.Store) string {
	t.Helper()
	cursor, err := changes.Now(t.Context(), store, nil)
	must.OK(t, err)
	return cursor
}

// TestChangesAreSubscribed: the events are those of the command, and a client goes on from each cursor.
func TestChangesAreSubscribed(t *testing.T) {
	store := newLoggedStore(t)
	apitest.Users(t, store, 3)
	api := apitest.New(t, store, apitest.Options{})
	for _, over := range apitest.Transports {
		t.Run(string(over), func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			answers := api.For(t).Admin().Subscribe(ctx, over, subscribeToChanges, nil)
			start := nextChange(t, answers)
			must.That(t, start.Kind == nil && start.Subject == nil && start.Data == nil && start.Cursor != nil, "first came %s", start.text)
			api.For(t).As(1).Ask(`mutation { follow(userId: 2) { changed } }`, nil).Whole()
			api.For(t).As(1).Ask(`mutation { unfollow(userId: 2) { changed } }`, nil).Whole()
			api.For(t).As(1).Ask(`mutation { publishPost(text: "hello", clientKey: "`+string(over[:6])+`") { post { id } } }`, nil).Whole()
			var command []changes.Event
			err := changes.Run(t.Context(), changes.Config{Store: store, After: *start.Cursor, UntilNow: true}, func(e changes.Event) error {
				command = append(command, e)
				return nil
			})
			must.OK(t, err)
			must.That(t, len(command) >= 4, "the command has %d events", len(command)) // a position, two follows, a post
			var got []change
			for _, e := range command[1:] {
				c := nextChange(t, answers)
				data, _ := json.Marshal(c.Data)
				want, _ := json.Marshal(e.Data)
				if c.EventID != e.ID || c.Source != e.Source || "kith."+strings.ToLower(string(*c.Kind)) != e.Type || *c.Subject != e.Subject || *c.Cursor != e.Cursor || string(data) != string(want) ||
					(c.Time == nil) != e.Time.IsZero() || c.Time != nil && !c.Time.Equal(e.Time) {
					t.Errorf("came %s, and the command says %+v", c.text, e)
				}
				got = append(got, c)
			}
			for i, c := range append([]change{start}, got...) {
				ctx, leave := context.WithCancel(t.Context())
				rest := api.For(t).Admin().Subscribe(ctx, over, subscribeToChanges, apitest.Vars{"after": *c.Cursor})
				nextChange(t, rest) // where it begins
				for _, want := range got[i:] {
					check.Equal(t, fmt.Sprint("after cursor ", i), nextChange(t, rest).text, want.text)
				}
				leave()
			}
			posts := api.For(t).Admin().Subscribe(ctx, over, subscribeToChanges, apitest.Vars{"after": *start.Cursor, "kinds": []string{"POSTS"}})
			nextChange(t, posts)
			check.That(t, nextChange(t, posts).is(model.ChangeKindPosts), "of posts alone came something else")
		})
	}
}

// TestDigestsAreSubscribed: they come with the changes, to one subscription at a time, which goes on.
func TestDigestsAreSubscribed(t *testing.T) {
	store := newLoggedStore(t)
	apitest.Users(t, store, 3)
	api := apitest.New(t, store, apitest.Options{})
	api.As(1).Ask(`mutation { follow(userId: 2) { changed } }`, nil).Whole()
	asked := apitest.Vars{"kinds": []string{"FOLLOWS", "DIGESTS"}}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	answers := api.Admin().Subscribe(ctx, apitest.WebSocket, subscribeToChanges, asked)
	rows := 0
	for range storage.Buckets {
		c := nextChange(t, answers)
		for c.Kind == nil { // only a cursor
			c = nextChange(t, answers)
		}
		must.That(t, c.is(model.ChangeKindDigests), "instead of a digest came %s", c.text)
		if strings.Contains(c.text, `"rows":"1"`) {
			rows++
		}
	}
	check.Equal(t, "follows in the digests", rows, 1)
	check.Has(t, "another one", nextChange(t, api.Admin().Subscribe(t.Context(), apitest.WebSocket, subscribeToChanges, asked)).text, `"TOO_MANY_SUBSCRIPTIONS"`)
	api.As(1).Ask(`mutation { unfollow(userId: 2) { changed } }`, nil).Whole()
	for c := nextChange(t, answers); !c.is(model.ChangeKindFollows); c = nextChange(t, answers) {
		must.That(t, c.Kind == nil, "behind the digests comes %s", c.text)
	}
}

// TestChangesAreForOperators: for everybody else the field does not exist, whatever was asked before, and over every transport.
func TestChangesAreForOperators(t *testing.T) {
	store := newLoggedStore(t)
	apitest.Users(t, store, 2)
	api := apitest.New(t, store, apitest.Options{})
	const want = `Cannot query field "changes" on type "Subscription".`
	refused := func(who string, text string) {
		t.Helper()
		check.Has(t, who, text, strings.ReplaceAll(want, `"`, `\"`))
		check.Lacks(t, who, text, "cost", "relation_log", `"data"`)
	}
	nobodies := map[string]*apitest.API{"nobody": api, "user 1": api.As(1), "a backend": api.As(1).With("X-Test-Scope", identity.ScopeActAs)}
	for _, over := range apitest.Transports {
		for who, api := range nobodies {
			if over == apitest.Events {
				api = api.With("Kith-Cost", "1")
			}
			for range 2 {
				answers := api.Subscribe(t.Context(), over, `subscription { changes { cursor } }`, nil)
				refused(who, nextChange(t, answers).text)
				operator, leave := context.WithCancel(t.Context()) // then the gateway knows the text
				c := nextChange(t, api.Admin().Subscribe(operator, over, `subscription { changes { cursor } }`, nil))
				check.That(t, c.Cursor != nil, "an operator gets %s", c.text)
				leave()
			}
		}
	}
	for who, api := range nobodies {
		if a := api.Ask(`{ __type(name: "Subscription") { fields { name } } change: __type(name: "ChangeEvent") { name } kind: __type(name: "ChangeKind") { name } }`, nil).Whole(); strings.Contains(a.Text, "hange") && strings.Contains(a.Text, `"changes"`) || a.At("change") != nil || a.At("kind") != nil {
			t.Errorf("%s sees %s", who, a.Text)
		}
	}
	for caller, code := range map[*identity.Viewer]string{nil: "UNAUTHENTICATED", {ID: 1}: "FORBIDDEN", {ID: 1, Scopes: []string{identity.ScopeActAs}}: "FORBIDDEN"} {
		ctx := t.Context()
		if caller != nil {
			ctx = identity.With(ctx, *caller)
		}
		answers, err := (&resolvers.Resolver{Changes: func(context.Context, *string, []model.ChangeKind, func(*model.ChangeEvent) error) error {
			t.Error("the store has been asked")
			return nil
		}}).Subscription().Changes(ctx, nil, nil)
		known, _ := apierr.Of(err)
		check.That(t, answers == nil && known != nil && string(known.Code) == code, "the field itself says %v to %+v", err, caller)
	}
}

// logless is a store on an engine without a log.
type logless struct{ *sqlstore.Store }

func (logless) HasLog() bool { return false }

func TestChangesAreRefused(t *testing.T) {
	store, other := newLoggedStore(t), newLoggedStore(t)
	apitest.Users(t, store, 20)
	api := apitest.New(t, store, apitest.Options{}).Admin()
	foreign, old := cursorOf(t, other), cursorOf(t, store)
	apitest.Publish(t, store, 20)
	last, err := store.LastOfLog(t.Context(), 0)
	if err == nil {
		err = store.PruneLog(t.Context(), 0, last-1)
	}
	must.OK(t, err)
	kinds := func(n int) []string { return slices.Repeat([]string{"USERS"}, n) }
	for what, c := range map[string]struct {
		of   *apitest.API
		vars apitest.Vars
		want string // code, reason and argument
	}{
		"an empty cursor":           {api, apitest.Vars{"after": ""}, "BAD_USER_INPUT CURSOR_MALFORMED after"},
		"no cursor":                 {api, apitest.Vars{"after": "x"}, "BAD_USER_INPUT CURSOR_MALFORMED after"},
		"a cursor of another store": {api, apitest.Vars{"after": foreign}, "BAD_USER_INPUT CURSOR_MALFORMED after"},
		"the longest text":          {api, apitest.Vars{"after": strings.Repeat("A", 1<<15)}, "BAD_USER_INPUT CURSOR_MALFORMED after"},
		"a longer one":              {api, apitest.Vars{"after": strings.Repeat("A", 1<<15+1)}, "BAD_USER_INPUT TOO_LONG after"},
		"no kinds":                  {api, apitest.Vars{"kinds": kinds(0)}, "BAD_USER_INPUT INVALID_VALUE kinds"},
		"too many kinds":            {api, apitest.Vars{"kinds": kinds(len(model.AllChangeKind) + 1)}, "BAD_USER_INPUT TOO_LONG kinds"},
		"an unknown kind":           {api, apitest.Vars{"kinds": []string{"PASSWORDS"}}, "BAD_USER_INPUT INVALID_VALUE "},
		"digests alone":             {api, apitest.Vars{"kinds": []string{"DIGESTS", "USERS"}}, "BAD_USER_INPUT INVALID_VALUE kinds"},
		"counts on SQLite":          {api, apitest.Vars{"kinds": []string{"COUNTS"}}, "BAD_USER_INPUT INVALID_VALUE kinds"},
		"a cursor that is too old":  {api, apitest.Vars{"after": old}, "SNAPSHOT_NEEDED SNAPSHOT_NEEDED "},
		"a store without a log":     {apitest.New(t, logless{store}, apitest.Options{}).Admin(), nil, "FORBIDDEN NOT_POSSIBLE "},
		"one that is not read":      {apitest.New(t, oracle.New(), apitest.Options{}).Admin(), nil, "FORBIDDEN NOT_POSSIBLE "},
	} {
		for _, over := range apitest.Transports {
			answers := c.of.Subscribe(t.Context(), over, subscribeToChanges, c.vars)
			text := nextChange(t, answers).text
			if strings.HasPrefix(c.want, "SNAPSHOT") && strings.Contains(text, old) {
				text = nextChange(t, answers).text // a position is sent before the log is read
			}
			var answer struct {
				Errors []apitest.Error
				Data   json.RawMessage
			}
			if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Errors) != 1 || answer.Data != nil && string(answer.Data) != "null" {
				t.Errorf("%s over %s: %s", what, over, text)
				continue
			}
			e := answer.Errors[0]
			check.Equal(t, fmt.Sprintf("%s over %s", what, over), e.Code()+" "+e.Reason()+" "+e.Argument(), c.want)
			check.Lacks(t, what, text, "sqlite", "relation_log of")
		}
	}
	first := nextChange(t, api.Subscribe(t.Context(), apitest.Events, subscribeToChanges, apitest.Vars{"kinds": kinds(len(model.AllChangeKind))}))
	check.That(t, first.Cursor != nil, "of as many kinds as there are: %s", first.text)
	for what, query := range map[string]string{
		"twice":                `subscription { a: changes { cursor } b: changes { cursor } }`,
		"beside another field": `subscription { changes { cursor } relationshipChanged(userIds: []) { viewer { user { id } } } }`,
		"deferred":             `subscription { changes { ... @defer { cursor } } }`,
		"as a query":           `{ changes { cursor } }`,
	} {
		text := nextChange(t, api.Subscribe(t.Context(), apitest.WebSocket, query, nil)).text
		check.Has(t, what, text, `"BAD_USER_INPUT"`)
		check.Lacks(t, what, text, `"data":{`)
	}
}

// TestSubscriptionsToChangesAreFew: each reads the logs for itself.
func TestSubscriptionsToChangesAreFew(t *testing.T) {
	api := apitest.New(t, newLoggedStore(t), apitest.Options{}).Admin()
	var leaving []context.CancelFunc
	for i := range changes.MaxSubscriptions {
		ctx, leave := context.WithCancel(t.Context())
		leaving = append(leaving, leave)
		c := nextChange(t, api.Subscribe(ctx, apitest.Transports[i%2], subscribeToChanges, nil))
		must.That(t, c.Cursor != nil, "subscription %d: %s", i, c.text)
	}
	const refused = `"reason":"TOO_MANY_SUBSCRIPTIONS"`
	for _, over := range apitest.Transports {
		check.Has(t, "one more", nextChange(t, api.Subscribe(t.Context(), over, subscribeToChanges, nil)).text, refused, `"RATE_LIMITED"`)
	}
	for _, leave := range leaving {
		leave()
		for began := time.Now(); ; time.Sleep(time.Millisecond) {
			c := nextChange(t, api.Subscribe(t.Context(), apitest.Events, subscribeToChanges, nil))
			if c.Cursor != nil {
				break
			}
			must.That(t, strings.Contains(c.text, refused) && time.Since(began) <= time.Minute, "after one has left: %s", c.text)
		}
	}
}

// counted counts the users that are read.
type counted struct {
	*sqlstore.Store
	users atomic.Int64
}

func (c *counted) Bundle(ctx context.Context, b *storage.Bundle) {
	if l := storage.UserLookups.In(b); l != nil {
		c.users.Add(int64(len(l.Keys)))
	}
	c.Store.Bundle(ctx, b)
}

// TestAClientOfChangesThatStandsStill: the gateway reads no further than it can send, and soon ends the connection.
func TestAClientOfChangesThatStandsStill(t *testing.T) {
	store := &counted{Store: newLoggedStore(t)}
	start := cursorOf(t, store.Store)
	const n = 3000 // of 5 KB: more than all buffers of a connection take
	var users []storage.User
	for i := range n {
		users = append(users, storage.User{ID: storage.UserID(i + 1), Handle: fmt.Sprintf("user_%d", i), Bio: strings.Repeat("é", 500), AvatarURL: "https://a.example/" + strings.Repeat("a", 1900), Website: "https://a.example/" + strings.Repeat("a", 1900), CreatedAt: 1e6})
	}
	must.All(t, store.CreateUsers(t.Context(), users))
	log := &logged.Text{}
	api := apitest.New(t, store, apitest.Options{Log: log, WriteTimeout: 2 * time.Second}) // long enough to read all, if nothing held it up
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(api.URL(), "http://"), "/graphql"))
	must.OK(t, err)
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	body, _ := json.Marshal(map[string]any{"query": subscribeToChanges, "variables": map[string]any{"after": start}})
	request, _ := http.NewRequest(http.MethodPost, api.URL(), strings.NewReader(string(body)))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "text/event-stream", "X-Test-Viewer": "1", "X-Test-Scope": "admin"} {
		request.Header.Set(name, value)
	}
	store.users.Store(0)
	must.OK(t, request.Write(conn))
	must.Soon(t, "the client is cut off", func() bool { return strings.Contains(log.String(), "ended=slow") })
	read := store.users.Load()
	must.That(t, read != 0 && read < n, "%d of %d users have been read for a client that takes nothing", read, n)
	answers := api.Admin().Subscribe(t.Context(), apitest.WebSocket, `subscription($after: String) { changes(after: $after) { subject } }`, apitest.Vars{"after": start})
	nextChange(t, answers)
	for i := range n { // who reads gets all of them
		c := nextChange(t, answers)
		must.That(t, c.Subject != nil, "after %d: %s", i, c.text)
	}
}
