package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kith/graph/apierr"
)

// Answer is the answer to a query.
type Answer struct {
	t      T
	Text   string // as it came
	Header http.Header
	Data   map[string]any // nil: null or missing; numbers are json.Number
	Errors []Error

	Extensions map[string]any
}

// Stale reports whether the answer says that it may be.
func (a Answer) Stale() bool { return a.Extensions["stale"] == true }

// Token is the consistency token among the extensions.
func (a Answer) Token() string {
	token, _ := a.Extensions["consistencyToken"].(string)
	return token
}

// Error is one of the errors in an answer.
type Error struct {
	Message    string         `json:"message"`
	Path       []any          `json:"path"` // of strings and json.Numbers
	Extensions map[string]any `json:"extensions"`
}

// Code is `extensions.code`, "" when it is missing.
func (e Error) Code() string {
	code, _ := e.Extensions["code"].(string)
	return code
}

// Reason is `extensions.reason`, "" when it is missing.
func (e Error) Reason() string {
	reason, _ := e.Extensions["reason"].(string)
	return reason
}

// Argument is `extensions.argument`, "" when it is missing.
func (e Error) Argument() string {
	argument, _ := e.Extensions["argument"].(string)
	return argument
}

// Retryable is `extensions.retryable`; ok reports whether it exists.
func (e Error) Retryable() (retryable, ok bool) {
	retryable, ok = e.Extensions["retryable"].(bool)
	return retryable, ok
}

// At is the path with dots: "user.followings.nodes.3".
func (e Error) At() string {
	steps := make([]string, len(e.Path))
	for i, s := range e.Path {
		steps[i] = fmt.Sprint(s)
	}
	return strings.Join(steps, ".")
}

func parseAnswer(t T, header http.Header, text []byte) (Answer, error) {
	var parsed struct {
		Data   map[string]any `json:"data"`
		Errors []Error        `json:"errors"`

		Extensions map[string]any `json:"extensions"`
	}
	if err := decode(text, &parsed); err != nil {
		return Answer{}, fmt.Errorf("%q is no GraphQL answer: %w", text, err)
	}
	for _, e := range parsed.Errors {
		if reason := apierr.Reason(e.Reason()); reason == "" || string(reason.Code()) != e.Code() {
			return Answer{}, fmt.Errorf("an error has the code %q and the reason %q: %q", e.Code(), reason, text)
		}
	}
	return Answer{t: t, Text: string(text), Header: header, Data: parsed.Data, Errors: parsed.Errors, Extensions: parsed.Extensions}, nil
}

func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// Whole fails the test if there are errors.
func (a Answer) Whole() Answer {
	a.t.Helper()
	if len(a.Errors) > 0 || a.Data == nil {
		a.t.Fatalf("not a whole answer: %s", abridged(a.Text))
	}
	return a
}

// Is fails the test unless the answer is whole and its data are these, written as
// JSON.
func (a Answer) Is(data string) {
	a.t.Helper()
	a.Whole()
	a.DataIs(data)
}

// DataIs is Is for an answer that may also have errors.
func (a Answer) DataIs(data string) {
	a.t.Helper()
	if !a.HasData(data) {
		a.t.Errorf("got\n\t%s\nwant data\n\t%s", abridged(a.Text), data)
	}
}

// HasData reports whether the answer's data are these, written as JSON.
func (a Answer) HasData(data string) bool {
	a.t.Helper()
	var want map[string]any
	if err := decode([]byte(data), &want); err != nil {
		a.t.Fatalf("%s: %v", data, err)
	}
	return reflect.DeepEqual(a.Data, want)
}

// Refused fails the test unless there is one error and it has this code. It
// returns the error's message.
func (a Answer) Refused(code string) string {
	a.t.Helper()
	if len(a.Errors) != 1 || a.Errors[0].Code() != code {
		a.t.Errorf("got %s, want one error %s", abridged(a.Text), code)
		return ""
	}
	return a.Errors[0].Message
}

// RefusedFor fails the test unless there is one error, and it is for a reason and about an argument; "": about none.
func (a Answer) RefusedFor(reason, argument string) {
	a.t.Helper()
	if len(a.Errors) != 1 || a.Errors[0].Reason() != reason || a.Errors[0].Argument() != argument {
		a.t.Errorf("got %s, want one error %s about the argument %q", abridged(a.Text), reason, argument)
	}
}

// FailsAt fails the test unless there is an error of this code at each of these
// paths (see [Error.At]), in any order, and no other.
func (a Answer) FailsAt(code string, paths ...string) {
	a.t.Helper()
	var got []string
	for _, e := range a.Errors {
		got = append(got, e.Code()+" "+e.At())
	}
	want := make([]string, len(paths))
	for i, p := range paths {
		want[i] = code + " " + p
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		a.t.Errorf("got the errors\n\t%s\nwant\n\t%s\nin %s",
			strings.Join(got, "\n\t"), strings.Join(want, "\n\t"), abridged(a.Text))
	}
}

// At returns what is at a path of the data, "user.followings.nodes.3.handle"; nil
// for null. A path that does not exist fails the test.
func (a Answer) At(path string) any {
	a.t.Helper()
	var v any = a.Data
	for step := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			below, ok := at[step]
			if !ok {
				a.t.Fatalf("no %s (at %q) in %s", path, step, abridged(a.Text))
			}
			v = below
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(at) {
				a.t.Fatalf("no %s (at %q) in %s", path, step, abridged(a.Text))
			}
			v = at[i]
		default:
			a.t.Fatalf("no %s (at %q) in %s", path, step, abridged(a.Text))
		}
	}
	return v
}

// Into decodes what is at a path of the data.
func Into[T any](a Answer, path string) T {
	a.t.Helper()
	var v T
	text, err := json.Marshal(a.At(path))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		a.t.Fatalf("%s in %s: %v", path, abridged(a.Text), err)
	}
	return v
}

func abridged(text string) string {
	const most = 2000
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
