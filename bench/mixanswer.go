package bench

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"kith/storage"
)

func (s *mixed) judge(status int, response []byte, thorough bool) error {
	err := Skim(status, response)
	if err == nil {
		s.asked.end()
	}
	if s.asked.op == deleteNode && errors.Is(err, errIncomplete) {
		err = nil // a deletion that takes more than two seconds goes on after its answer
	}
	if err == nil && thorough {
		err = decode(response, func(got *answer) error { return s.holds(&s.asked, got) })
	}
	if err != nil {
		return fmt.Errorf("%s: %w", mixedQueries[s.asked.op], err)
	}
	return nil
}

func (m *Mix) holds(q *mixedRequest, got *answer) error {
	switch d := &got.Data; q.op {
	case getList:
		if d.User == nil {
			return errMissing
		}
		if err := checkNewestFirst(d.User.Followings); err != nil {
			return err
		}
		return m.isOn(q, d.User.Followings)
	case getNode:
		return m.isPerson(q, d.User.person())
	case countLinks:
		if d.User == nil || d.User.FollowingCount == nil {
			return errMissing
		}
		if *d.User.FollowingCount < 0 {
			return errCount
		}
	case getLinks:
		err := checkRelationsTo(q.id, q.to, d.Relationships)
		for i, to := range q.to {
			if err == nil && !m.mayFollow(q, to, *d.Relationships[i].Following) {
				err = fmt.Errorf("%w: the follow of %d", errWritten, to)
			}
		}
		return err
	case addLink:
		return d.Follow.isThere()
	case deleteLink:
		return d.Unfollow.isThere()
	case updateLink:
		return d.SetFollowMark.isThere()
	case updateNode:
		return m.isPerson(q, d.UpdateProfile.Viewer.User)
	case addNode:
		return m.isPerson(q, d.CreateUser.User)
	case deleteNode:
		if d.DeleteAccount.Complete == nil {
			return errMissing
		}
	}
	return nil
}

// isPerson checks that the answer has the user whom the request is about.
func (m *Mix) isPerson(q *mixedRequest, got *personAnswer) error {
	switch {
	case got == nil || got.Name == "":
		return errMissing
	case got.ID != q.id:
		return errOther
	case q.op == addNode && got.Name != q.name, q.op != addNode && !m.mayBeCalled(q, q.known, got.Name):
		return errWritten
	}
	return nil
}

// mayBeCalled compares a name with those that the user was given.
func (m *Mix) mayBeCalled(q *mixedRequest, user *written, name string) bool {
	m.compared.Add(1)
	user.mu.Lock()
	defer user.mu.Unlock()
	return user.name.mayBe(name, q.reading, q.rename)
}

// mayFollow compares a follow of the user whom the request is about with those that were written.
func (m *Mix) mayFollow(q *mixedRequest, to storage.UserID, follows bool) bool {
	m.compared.Add(1)
	q.known.mu.Lock()
	defer q.known.mu.Unlock()
	r := q.known.follows[to]
	return r == nil || r.mayBe(follows, q.reading, nil)
}

// isOn checks that the first page of the user's followings shows what was written of them, and of their names.
func (m *Mix) isOn(q *mixedRequest, list *listAnswer) error {
	shown := map[storage.UserID]bool{}
	for _, e := range list.Edges {
		shown[e.Node.ID] = true
		if !m.mayFollow(q, e.Node.ID, true) {
			return fmt.Errorf("%w: the follow of %d", errWritten, e.Node.ID)
		}
		if n := m.numbers[e.Node.ID]; n > 0 && !m.mayBeCalled(q, &m.written[n], e.Node.Name) {
			return fmt.Errorf("%w: the name of %d", errWritten, e.Node.ID)
		}
	}
	if len(list.Edges) == 20 {
		return nil // the others are on another page
	}
	q.known.mu.Lock()
	written := slices.Collect(maps.Keys(q.known.follows))
	q.known.mu.Unlock()
	for _, id := range written {
		if !shown[id] && !m.mayFollow(q, id, false) {
			return fmt.Errorf("%w: the follow of %d", errWritten, id)
		}
	}
	return nil
}

func (u *userAnswer) person() *personAnswer {
	if u == nil {
		return nil
	}
	return &u.personAnswer
}

func (c *changeAnswer) isThere() error {
	if c == nil || c.Changed == nil {
		return errMissing
	}
	return nil
}

// checkRelationsTo checks that there is one relation for each user asked about, in order.
func checkRelationsTo(from storage.UserID, to []storage.UserID, got []*relationAnswer) error {
	if len(got) != len(to) {
		return errCount
	}
	for i, r := range got {
		switch {
		case r == nil || r.Following == nil || r.FollowedBy == nil:
			return errMissing
		case r.ID != fmt.Sprintf("rel_%d_%d", from, to[i]):
			return errOther
		}
	}
	return nil
}
