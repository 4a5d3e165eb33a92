package bench

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"kith/accounts/identity"
	"kith/storage"
)

// FeedGraph is a graph whose users have posted, with readers of home feeds beside it. How many posts
// a user has is log-normal, and they are spread over the last 30 days. The same arguments always give the
// same graph.
type FeedGraph struct {
	*Graph
	Groups []Readers

	posts []FeedPost // oldest first
}

// Readers are users who each follow the same number of users of the graph, and whom nobody follows.
type Readers struct {
	Followings int
	IDs        []storage.UserID
	follows    [][]int // numbers of users, by reader
}

// FeedPost is the place of a post in home feeds.
type FeedPost struct {
	storage.PostID
	At     storage.Micros
	author int // number
}

const (
	readersOfEach = 16
	postDays      = 30
	meanPosts     = 10  // of a user
	postSpread    = 1.2 // sigma of their log-normal distribution
)

// NewFeedGraph lets the users of a graph post until now, and adds readers with the given numbers of
// followings.
func NewFeedGraph(g *Graph, now time.Time, followings []int) *FeedGraph {
	f := &FeedGraph{Graph: g}
	f.draw(storage.MicrosOf(now))
	next := g.Users
	for _, n := range followings {
		group := Readers{Followings: n}
		for range readersOfEach {
			next++
			group.IDs = append(group.IDs, g.ID(next))
			group.follows = append(group.follows, f.followed(min(n, g.Users), next))
		}
		f.Groups = append(f.Groups, group)
	}
	return f
}

func (f *FeedGraph) draw(now storage.Micros) {
	const span = postDays * 24 * int64(time.Hour/time.Microsecond)
	for n := 1; n <= f.Users; n++ {
		r := f.random(purposePosts, n)
		id := f.ID(n)
		count := math.Exp(r.NormFloat64()*postSpread + math.Log(meanPosts) - postSpread*postSpread/2)
		for range int(count) {
			f.posts = append(f.posts, FeedPost{PostID: storage.PostID{Author: id}, At: now - storage.Micros(r.Int64N(span)), author: n})
		}
	}
	slices.SortFunc(f.posts, func(a, b FeedPost) int { return int(a.At - b.At) })
	for i := range f.posts { // as accounts/ids makes numbers: by the time in 10 ms, and 24 bits
		f.posts[i].Number = int64(f.posts[i].At/10_000)<<24 | int64(i)&(1<<24-1)
	}
}

// followed draws a number of users: half of them by popularity, so that readers follow celebrities, the rest
// from all.
func (f *FeedGraph) followed(count, reader int) []int {
	r := f.random(purposeReaders, reader)
	seen := map[int]bool{}
	for tries := 0; tries < count && len(seen) < count/2; tries++ {
		seen[f.pickPopular(r)] = true
	}
	for len(seen) < count {
		seen[f.anyone(r)] = true
	}
	list := make([]int, 0, count)
	for n := range seen {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// Rows yields the posts as a store keeps them, oldest first.
func (f *FeedGraph) Rows() iter.Seq[storage.PostRow] {
	return func(yield func(storage.PostRow) bool) {
		for _, p := range f.posts {
			number := strconv.FormatInt(p.Number, 10)
			text := "What user " + p.Author.String() + " had to say on this day, as post " + number + " of all, in about as many words as people take."
			if !yield(storage.PostRow{NewPost: storage.NewPost{PostID: p.PostID, Key: number, Text: text, At: p.At}}) {
				return
			}
		}
	}
}

// ReaderEdges yields the follows of the readers.
func (f *FeedGraph) ReaderEdges() iter.Seq[storage.Edge] {
	begin := storage.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return func(yield func(storage.Edge) bool) {
		for _, group := range f.Groups {
			for i, id := range group.IDs {
				for at, n := range group.follows[i] {
					if !yield(storage.Edge{From: id, To: f.ID(n), Type: storage.Following, UpdateTime: begin + storage.Micros(at)}) {
						return
					}
				}
			}
		}
	}
}

// Newest returns the newest posts of a reader's home feed, newest first. It looks at each post.
func (f *FeedGraph) Newest(g *Readers, reader, limit int) (page []FeedPost) {
	follows := make([]bool, f.Users+1)
	for _, n := range g.follows[reader] {
		follows[n] = true
	}
	for _, p := range slices.Backward(f.posts) {
		if len(page) == limit {
			break
		}
		if follows[p.author] {
			page = append(page, p)
		}
	}
	return page
}

// FeedPages asks for the first page of the home feeds of a group of readers.
type FeedPages struct {
	issuer *identity.Issuer
	group  *Readers
	want   [][]string // ids of the posts, by reader
}

// FeedPageSize is how many posts a page has.
const FeedPageSize = 20

const feedQuery = `query Feed { viewer { feed(first: 20) { edges { node { id text createdAt author { id name } } } complete } } }`

// NewFeedPages makes the load. The secret signs the readers' tokens, as [identity.IssuerConfig.Secret].
func NewFeedPages(f *FeedGraph, group *Readers, secret []byte) (*FeedPages, error) {
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets(secret)})
	pages := &FeedPages{issuer: issuer, group: group}
	for reader := range group.IDs {
		var ids []string
		for _, p := range f.Newest(group, reader, FeedPageSize) {
			ids = append(ids, fmt.Sprintf("post_%d_%d", p.Author, p.Number))
		}
		pages.want = append(pages.want, ids)
	}
	return pages, err
}

func (f *FeedPages) title() string { return fmt.Sprint("feed of ", f.group.Followings) }

func (f *FeedPages) stream(load *Load, connection int) stream {
	return &feedPages{FeedPages: f, random: rand.New(rand.NewPCG(load.Seed, 1<<42+uint64(connection))), tokens: make([]string, len(f.group.IDs))}
}

// feedPages is the load as one connection asks it.
type feedPages struct {
	*FeedPages
	random *rand.Rand
	reader int
	tokens []string // by reader
}

func (s *feedPages) next(body []byte) ([]byte, string, bool) {
	s.reader = s.random.IntN(len(s.group.IDs))
	if s.tokens[s.reader] == "" {
		var err error
		if s.tokens[s.reader], _, err = s.issuer.Issue(s.group.IDs[s.reader], 0); err != nil {
			return body, "", false // no user has such an id
		}
	}
	body = append(body, `{"query":`...)
	body = strconv.AppendQuote(body, feedQuery)
	return append(body, '}'), s.tokens[s.reader], true
}

func (s *feedPages) kind() string { return "" }

func (s *feedPages) by() storage.UserID { return s.group.IDs[s.reader] }

func (s *feedPages) judge(status int, response []byte, thorough bool) error {
	err := Skim(status, response)
	if err != nil || !thorough {
		return err
	}
	var got struct {
		Data struct {
			Viewer struct {
				Feed struct {
					Edges []struct {
						Node struct {
							ID, Text  string
							CreatedAt time.Time
							Author    personAnswer
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(response, &got); err != nil {
		return err
	}
	var ids []string
	for _, e := range got.Data.Viewer.Feed.Edges {
		if e.Node.Text == "" || e.Node.Author.Name == "" || e.Node.CreatedAt.IsZero() {
			return fmt.Errorf("a post lacks something: %.300s", response)
		}
		ids = append(ids, e.Node.ID)
	}
	if !slices.Equal(ids, s.want[s.reader]) {
		return fmt.Errorf("user %d has the page %v, want %v", s.group.IDs[s.reader], ids, s.want[s.reader])
	}
	return nil
}
