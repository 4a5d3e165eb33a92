package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"kith/accounts/identity"
	"kith/storage"
)

// App is what the web app asks for users who are signed in: operations of web/app/src/queries.graphql, without the fields that depend on the
// moment. Viewers and profiles are drawn over all users.
type App struct {
	graph     *Graph
	issuer    *identity.Issuer
	operation string // or AppName: all, in their shares
}

// AppRequest is one request of the web app.
type AppRequest struct {
	Operation string
	Viewer    storage.UserID // who is signed in
	Handle    string         // of the profile; "" if it is about the viewer
	Body      []byte
	Token     string
}

// AppName is what all operations together, in their shares, are called.
const AppName = "app"

// appOperation is one of the operations.
type appOperation struct {
	name     string
	share    int // in percent
	byHandle bool
	query    string
}

const (
	appAuthor = `id handle name viewerRelationship { id status following followedBy }`
	appPosts  = `(first: 20) { nodes { id text createdAt commentCount favoritesReceivedCount viewerHasFavorited author { ` + appAuthor + ` } } pageInfo { hasNextPage } }`
)

var appOperations = []appOperation{
	{"AppProfile", 30, true, `query AppProfile($handle: String!) { user(by: {handle: $handle}) {
  id handle name avatarUrl bio followingCount followerCount friendCount postCount favoritesGivenCount
  followersYouKnow(first: 4) { totalCount nodes { id handle name } }
  viewerRelationship { id status following followedBy blocking blockedBy special remark sentRequest { id } receivedRequest { id } } } }`},
	{"AppFeed", 25, false, `query AppFeed { viewer { feed` + appPosts + ` } }`},
	{"AppPosts", 15, true, `query AppPosts($handle: String!) { user(by: {handle: $handle}) { id posts` + appPosts + ` } }`},
	{"AppFollowings", 20, true, `query AppFollowings($handle: String!) { user(by: {handle: $handle}) {
  id followings(first: 30) { totalCount edges { followedAt node { avatarUrl bio ` + appAuthor + ` } } pageInfo { hasNextPage } } } }`},
	{"AppViewer", 10, false, `query AppViewer { viewer { user { id handle name bio followingCount followerCount friendCount } requests(kind: FRIEND, direction: RECEIVED, first: 0) { totalCount } } }`},
}

// AppOperations are the names of the operations.
func AppOperations() []string {
	names := make([]string, len(appOperations))
	for i := range appOperations {
		names[i] = appOperations[i].name
	}
	return names
}

// NewApp makes the load for a store that holds the graph: of one of [AppOperations], or of all of them ([AppName]). The secret signs the
// viewers' tokens, as [identity.IssuerConfig.Secret].
func NewApp(g *Graph, operation string, secret []byte) (*App, error) {
	if operation != AppName && !slices.Contains(AppOperations(), operation) {
		return nil, fmt.Errorf("the web app has no operation %q", operation)
	}
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets(secret)})
	return &App{g, issuer, operation}, err
}

// Ask asks for n requests, one after another. The first error, or wrong answer, is the error, which names the request.
func (a *App) Ask(seed uint64, n int, ask func(AppRequest) (response []byte, err error)) error {
	s := a.stream(&Load{Seed: seed}, 0).(*appStream)
	for range n {
		if s.next(nil); s.failed != nil {
			return s.failed
		}
		response, err := ask(s.asked)
		if err == nil {
			err = s.judge(200, response, true)
		}
		if err != nil {
			return fmt.Errorf("%s, handle %q, asked by %d: %w", s.asked.Operation, s.asked.Handle, s.asked.Viewer, err)
		}
	}
	return nil
}

func (a *App) title() string { return a.operation }

func (a *App) stream(load *Load, connection int) stream {
	return &appStream{App: a, random: rand.New(rand.NewPCG(load.Seed, 1<<43+uint64(connection))), tokens: map[storage.UserID]string{}}
}

// appStream is the load as one connection asks it.
type appStream struct {
	*App
	random *rand.Rand
	tokens map[storage.UserID]string
	asked  AppRequest
	failed error
}

func (s *appStream) next(body []byte) ([]byte, string, bool) {
	operation := s.draw()
	s.asked = AppRequest{Operation: operation.name, Viewer: s.graph.ID(s.graph.anyone(s.random))}
	body = append(body, `{"query":`...)
	body = strconv.AppendQuote(body, operation.query)
	if operation.byHandle {
		s.asked.Handle = "u" + s.graph.ID(s.graph.anyone(s.random)).String()
		body = append(body, `,"variables":{"handle":`...)
		body = append(strconv.AppendQuote(body, s.asked.Handle), '}')
	}
	body = append(body, '}')
	s.asked.Body = body
	if s.asked.Token = s.tokens[s.asked.Viewer]; s.asked.Token == "" {
		s.asked.Token, _, s.failed = s.issuer.Issue(s.asked.Viewer, 0)
		s.tokens[s.asked.Viewer] = s.asked.Token
	}
	return s.asked.Body, s.asked.Token, s.failed == nil
}

// draw makes up which operation is next.
func (s *appStream) draw() *appOperation {
	percent := s.random.IntN(100)
	for i := range appOperations {
		o := &appOperations[i]
		if percent -= o.share; s.operation == o.name || s.operation == AppName && percent < 0 {
			return o
		}
	}
	panic("the shares are less than 100 percent")
}

func (s *appStream) kind() string { return s.asked.Operation }

// judge skims as other loads do, except that fields may be null, such as a remark; users may not. Before a load, the answers are compared with
// those of the baseline.
func (s *appStream) judge(status int, response []byte, _ bool) error {
	err := skimErrors(status, response)
	if err == nil && (bytes.HasPrefix(response, []byte(`{"data":{"viewer":null`)) || bytes.HasPrefix(response, []byte(`{"data":{"user":null`))) {
		err = fmt.Errorf("%w: %.200s", errMissing, response)
	}
	return err
}
