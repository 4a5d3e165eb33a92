package bench

import (
	"encoding/json"
	"errors"
	"fmt"

	"kith/storage"
)

// mixedAnswer is what the mix's responses are decoded into.
type mixedAnswer struct {
	Errors []struct{ Message string }
	Data   struct {
		User          *userAnswer
		Relationships []*relationAnswer
		Follow        *changeAnswer
		Unfollow      *changeAnswer
		SetFollowMark *changeAnswer
		UpdateProfile *struct{ Viewer struct{ User *personAnswer } }
		CreateUser    *struct{ User *personAnswer }
		DeleteAccount *struct{ Complete *bool }
	}
}

type changeAnswer struct{ Changed *bool }

func (s *mixed) judge(status int, response []byte, thorough bool) error {
	err := Skim(status, response)
	s.asked.known.mu.Lock()
	defer s.asked.known.mu.Unlock()
	s.asked.end(err == nil)
	if s.asked.op == deleteNode && errors.Is(err, errIncomplete) {
		err = nil // a deletion that takes more than two seconds goes on after its answer
	}
	if err == nil && thorough {
		err = s.asked.check(response)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", mixedQueries[s.asked.op], err)
	}
	return nil
}

// check decodes a response and compares it with what was asked.
func (q *mixedRequest) check(response []byte) error {
	var got mixedAnswer
	if err := json.Unmarshal(response, &got); err != nil {
		return err
	}
	if len(got.Errors) > 0 {
		return fmt.Errorf("%s: %.300s", got.Errors[0].Message, response)
	}
	if err := q.holds(&got); err != nil {
		return fmt.Errorf("%w: %.300s", err, response)
	}
	return nil
}

func (q *mixedRequest) holds(got *mixedAnswer) error {
	switch d := &got.Data; q.op {
	case getList:
		if d.User == nil {
			return errMissing
		}
		if err := checkNewestFirst(d.User.Followings); err != nil || !q.alone {
			return err
		}
		return q.known.isOn(d.User.Followings)
	case getNode:
		if q.alone {
			q.name = q.known.name
		}
		return q.isPerson(d.User.person(), q.name)
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
			if follows, known := q.known.follows[to]; err == nil && q.alone && known && follows != *d.Relationships[i].Following {
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
		if d.UpdateProfile == nil {
			return errMissing
		}
		return q.isPerson(d.UpdateProfile.Viewer.User, q.name)
	case addNode:
		if d.CreateUser == nil {
			return errMissing
		}
		return q.isPerson(d.CreateUser.User, q.name)
	case deleteNode:
		if d.DeleteAccount == nil || d.DeleteAccount.Complete == nil {
			return errMissing
		}
	}
	return nil
}

// isPerson checks that the answer has the user whom the request is about; an empty name stands for any.
func (q *mixedRequest) isPerson(got *personAnswer, name string) error {
	switch {
	case got == nil || got.Name == "":
		return errMissing
	case got.ID != q.id:
		return errOther
	case name != "" && got.Name != name:
		return errWritten
	}
	return nil
}

// isOn checks that the first page of the user's followings shows what is known of them.
func (w *written) isOn(list *listAnswer) error {
	shown := map[storage.UserID]bool{}
	for _, e := range list.Edges {
		shown[e.Node.ID] = true
	}
	for id, follows := range w.follows {
		if shown[id] && !follows || !shown[id] && follows && len(list.Edges) < 20 {
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
