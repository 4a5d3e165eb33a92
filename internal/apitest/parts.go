package apitest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// The formats of answers in parts, as clients name them in Accept.
const (
	PartsByID   = "multipart/mixed;incrementalSpec=v0.2"
	PartsByPath = "multipart/mixed;deferSpec=20220824"
)

// Parts is an answer in parts.
type Parts struct {
	t        T
	Format   string           // "" if the answer is whole
	Messages []map[string]any // as they came
	Text     string
	Header   http.Header

	// What a client has put together of the messages.
	Data    map[string]any
	Errors  []any
	Failed  []any // errors of parts without data
	Pending map[string]map[string]any
}

// InParts sends a query as a client that accepts parts in a format, and puts the answer together. A
// message that such a client does not understand fails the test.
func (a *API) InParts(format, query string, vars Vars) Parts {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	response, err := a.With("Accept", format+", application/json").send(ctx, query, vars)
	if err != nil {
		a.t.Fatalf("%s: %v", query, err)
	}
	defer response.Body.Close()
	p := Parts{t: a.t, Header: response.Header, Pending: map[string]map[string]any{}}
	if err := p.read(response); err != nil {
		a.t.Fatalf("%s\nwith %v: %v\n%s", query, vars, err, p.Text)
	}
	return p
}

func (p *Parts) read(response *http.Response) error {
	media, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if media != "multipart/mixed" {
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		p.Text = string(text)
		return p.take(p.Text)
	}
	switch {
	case parameters["incrementalspec"] == "v0.2":
		p.Format = PartsByID
	case parameters["deferspec"] == "20220824":
		p.Format = PartsByPath
	}
	boundary := "\r\n--" + parameters["boundary"]
	r := bufio.NewReader(response.Body)
	text, err := io.ReadAll(r)
	p.Text = string(text)
	if err != nil {
		return err
	}
	rest, ok := strings.CutSuffix(p.Text, boundary+"--\r\n")
	first, rest, more := strings.Cut(rest, boundary)
	if !ok || first != "" || !more {
		return fmt.Errorf("no messages between boundaries %q", boundary)
	}
	for one := range strings.SplitSeq(rest, boundary) {
		head, body, _ := strings.Cut(one, "\r\n\r\n")
		if !strings.HasPrefix(strings.ToLower(head), "\r\ncontent-type: application/json") {
			return fmt.Errorf("the head of a message is %q", head)
		}
		if err := p.take(body); err != nil {
			return err
		}
		if last := p.Messages[len(p.Messages)-1]; last["hasNext"] != (len(p.Messages) < strings.Count(rest, boundary)+1) {
			return fmt.Errorf("message %d says hasNext: %v", len(p.Messages), last["hasNext"])
		}
	}
	if len(p.Pending) > 0 {
		return fmt.Errorf("parts are still pending: %v", p.Pending)
	}
	return nil
}

// take takes a message.
func (p *Parts) take(text string) error {
	var m map[string]any
	if err := decode([]byte(text), &m); err != nil {
		return err
	}
	p.Messages = append(p.Messages, m)
	if len(p.Messages) == 1 {
		p.Data, _ = m["data"].(map[string]any)
		p.Errors, _ = m["errors"].([]any)
	}
	for _, one := range list(m["pending"]) {
		id := one["id"].(string)
		if p.Pending[id] != nil {
			return fmt.Errorf("%v is pending twice", one)
		}
		p.Pending[id] = one
	}
	for _, one := range list(m["incremental"]) {
		path := one["path"]
		if id, ok := one["id"].(string); ok {
			pending := p.Pending[id]
			if pending == nil {
				return fmt.Errorf("%v was not announced", one)
			}
			below, _ := one["subPath"].([]any)
			path = slices.Concat(pending["path"].([]any), below)
		}
		errors, _ := one["errors"].([]any)
		p.Errors = append(p.Errors, errors...)
		if one["data"] == nil && p.Format == PartsByPath {
			p.Failed = append(p.Failed, errors...)
			continue
		}
		at, data := p.at(path), one["data"].(map[string]any)
		if at == nil {
			return fmt.Errorf("%v stands on nothing", one)
		}
		if err := merge(at, data); err != nil {
			return err
		}
	}
	for _, one := range list(m["pending"]) {
		if p.at(one["path"]) == nil {
			return fmt.Errorf("%v stands on nothing", one)
		}
	}
	for _, one := range list(m["completed"]) {
		id := one["id"].(string)
		if p.Pending[id] == nil {
			return fmt.Errorf("%v was not announced", one)
		}
		delete(p.Pending, id)
		errors, _ := one["errors"].([]any)
		p.Errors, p.Failed = append(p.Errors, errors...), append(p.Failed, errors...)
	}
	return nil
}

func list(of any) (all []map[string]any) {
	some, _ := of.([]any)
	for _, one := range some {
		all = append(all, one.(map[string]any))
	}
	return all
}

// at is the object at a path of names; nil if there is none.
func (p *Parts) at(path any) map[string]any {
	at := p.Data
	for _, name := range path.([]any) {
		at, _ = at[name.(string)].(map[string]any)
	}
	return at
}

// merge adds what is new to an object. Nothing may change.
func merge(into, more map[string]any) error {
	for name, value := range more {
		had, ok := into[name]
		inner, isObject := value.(map[string]any)
		switch at, _ := had.(map[string]any); {
		case !ok:
			into[name] = value
		case isObject && at != nil:
			if err := merge(at, inner); err != nil {
				return err
			}
		case !reflect.DeepEqual(had, value):
			return fmt.Errorf("%s is %v, and then %v", name, had, value)
		}
	}
	return nil
}

// Is fails the test unless the parts together are the given data, written as JSON, without errors.
func (p Parts) Is(data string) {
	p.t.Helper()
	var want map[string]any
	if err := decode([]byte(data), &want); err != nil {
		p.t.Fatalf("%s: %v", data, err)
	}
	if !reflect.DeepEqual(p.Data, want) || len(p.Errors) > 0 {
		p.t.Errorf("got\n%s\nwant data\n\t%s", p.Text, data)
	}
}
