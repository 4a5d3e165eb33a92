package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kith/storage"
)

// answer is what responses are decoded into.
type answer struct {
	Errors []struct{ Message string }
	Data   struct {
		User                            *userAnswer
		Relationships                   []*relationAnswer
		Follow, Unfollow, SetFollowMark *changeAnswer
		UpdateProfile                   struct{ Viewer struct{ User *personAnswer } }
		CreateUser                      struct{ User *personAnswer }
		DeleteAccount                   struct{ Complete *bool }
	}
}

type changeAnswer struct{ Changed *bool }

type relationAnswer struct {
	ID                    string
	Following, FollowedBy *bool
}

type userAnswer struct {
	personAnswer
	FollowingCount, FollowerCount                                    *int
	Followings, CommonFollowings, CommonFollowers, FollowSuggestions *listAnswer
}

type personAnswer struct {
	ID   storage.UserID `json:",string"`
	Name string
}

type listAnswer struct {
	TotalCount *int
	Complete   *bool
	Nodes      []*personAnswer
	Edges      []*struct {
		FollowedAt  time.Time
		SharedCount int
		Node        *personAnswer
	}
}

// Skim looks at a response without decoding it: cheap enough for every one.
func Skim(status int, response []byte) error {
	if err := skimErrors(status, response); err != nil {
		return err
	}
	switch {
	case bytes.Contains(response, []byte(`:null`)):
		return fmt.Errorf("something is missing: %.200s", response)
	case bytes.Contains(response, []byte(`"complete":false`)):
		return fmt.Errorf("incomplete: %w: %.200s", errIncomplete, response)
	}
	return nil
}

// skimErrors looks for errors only.
func skimErrors(status int, response []byte) error {
	switch {
	case status != 200:
		return fmt.Errorf("status %d: %.200s", status, response)
	case !bytes.HasPrefix(response, []byte(`{"data":{`)), bytes.Contains(response, []byte(`"errors":`)):
		return fmt.Errorf("errors: %.200s", response)
	}
	return nil
}

// decode decodes a response, and returns what is wrong with it, beside the response.
func decode(response []byte, check func(*answer) error) error {
	var got answer
	err := json.Unmarshal(response, &got)
	if err == nil && len(got.Errors) > 0 {
		err = errors.New(got.Errors[0].Message)
	}
	if err == nil {
		err = check(&got)
	}
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, response)
	}
	return nil
}

// Check decodes a response and compares it with what was asked.
func (q *Question) Check(a Arguments, response []byte) error {
	err := decode(response, func(got *answer) error {
		if got.Data.User == nil && got.Data.Relationships == nil {
			return errMissing
		}
		return q.check(a, got)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", q.Name, err)
	}
	return nil
}

// What can be wrong with an answer.
var (
	errMissing    = errors.New("a field or a user is missing")
	errIncomplete = errors.New("not complete")
	errOther      = errors.New("another user than was asked for")
	errWritten    = errors.New("not what was written before")
	errOrder      = errors.New("out of order")
	errCount      = errors.New("the number does not fit")
)

func checkUser(a Arguments, got *answer) error {
	switch u := got.Data.User; {
	case u.Name == "" || u.FollowingCount == nil || u.FollowerCount == nil:
		return errMissing
	case u.ID != a.ID:
		return errOther
	case *u.FollowingCount < 1: // the graph leaves nobody alone
		return errCount
	}
	return nil
}

func checkFollowings(_ Arguments, got *answer) error {
	if err := checkNewestFirst(got.Data.User.Followings); err != nil {
		return err
	}
	if len(got.Data.User.Followings.Edges) < 1 { // the graph leaves nobody alone
		return errCount
	}
	return nil
}

// checkNewestFirst checks that a list is complete and in the order of its times.
func checkNewestFirst(list *listAnswer) error {
	if err := checkList(list); err != nil {
		return err
	}
	if len(list.Edges) > 20 {
		return errCount
	}
	for i := 1; i < len(list.Edges); i++ {
		if list.Edges[i].FollowedAt.After(list.Edges[i-1].FollowedAt) {
			return errOrder
		}
	}
	return nil
}

func checkCommon(_ Arguments, got *answer) error {
	list := got.Data.User.CommonFollowings
	if list == nil {
		list = got.Data.User.CommonFollowers
	}
	if err := checkList(list); err != nil {
		return err
	}
	if list.TotalCount == nil || len(list.Nodes) != min(20, *list.TotalCount) {
		return errCount
	}
	for i := 1; i < len(list.Nodes); i++ {
		if list.Nodes[i].ID <= list.Nodes[i-1].ID {
			return errOrder
		}
	}
	return nil
}

func checkSuggestions(a Arguments, got *answer) error {
	list := got.Data.User.FollowSuggestions
	if err := checkList(list); err != nil {
		return err
	}
	if len(list.Edges) > 20 {
		return errCount
	}
	for i, e := range list.Edges {
		if e.Node.ID == a.ID {
			return errOther
		}
		if i == 0 {
			continue
		}
		before := list.Edges[i-1]
		if e.SharedCount > before.SharedCount || e.SharedCount == before.SharedCount && e.Node.ID <= before.Node.ID {
			return errOrder
		}
	}
	return nil
}

// checkList checks that a list exists, that it is complete, and that every user on it has a name.
func checkList(list *listAnswer) error {
	switch {
	case list == nil || list.Complete == nil:
		return errMissing
	case !*list.Complete:
		return errIncomplete
	}
	for _, n := range list.Nodes {
		if n == nil || n.Name == "" {
			return errMissing
		}
	}
	for _, e := range list.Edges {
		if e == nil || e.Node == nil || e.Node.Name == "" {
			return errMissing
		}
	}
	return nil
}
