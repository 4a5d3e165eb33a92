package bench

import (
	"math/rand/v2"

	"kith/accounts/identity"
)

// Follows is a load of writes only: each request lets a user follow another, both drawn from
// all users. In a large graph few of the pairs follow already.
type Follows struct{ issuer *identity.Issuer }

// NewFollows makes the load. The secret signs the followers' tokens, as
// [identity.IssuerConfig.Secret].
func NewFollows(secret []byte) (*Follows, error) {
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets(secret)})
	return &Follows{issuer}, err
}

// follow is what is asked.
var follow = &Question{Name: "follow", Query: `mutation Follow($id: ID!) { follow(userId: $id) { changed } }`}

func (f *Follows) title() string { return follow.Name }

func (f *Follows) stream(load *Load, connection int) stream {
	return &follows{Follows: f, graph: load.Graph, random: rand.New(rand.NewPCG(load.Seed, 1<<41+uint64(connection)))}
}

// follows is the load as one connection asks it.
type follows struct {
	*Follows
	graph  *Graph
	random *rand.Rand
}

func (s *follows) next(body []byte) ([]byte, string, bool) {
	from := s.graph.anyone(s.random)
	to := 1 + (from+s.random.IntN(s.graph.Users-1))%s.graph.Users // anybody else
	token, _, err := s.issuer.Issue(s.graph.ID(from), 0)
	if err != nil {
		return body, "", false // no user has such an id
	}
	return follow.AppendBody(body, Arguments{ID: s.graph.ID(to)}), token, true
}

func (s *follows) kind() string { return "" }

func (s *follows) judge(status int, response []byte, thorough bool) error {
	err := Skim(status, response)
	if err != nil || !thorough {
		return err
	}
	return decode(response, func(got *answer) error { return got.Data.Follow.isThere() })
}
