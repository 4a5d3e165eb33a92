package loaders

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"kith/storage"
)

// profileReader is what a store may be besides: one that reads users together with their
// counts, in one statement for each shard instead of two.
type profileReader interface {
	Profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile]
}

// profiles is a batch of users and one of counts that leave at the same time.
type profiles struct {
	reader profileReader
	users  *batch[storage.UserID, storage.User]
	counts *batch[storage.UserID, storage.Counts]
}

// together puts the batches of users and of counts among the tasks into one, if the store
// reads them so.
func (l *Loaders) together(tasks []task) []task {
	if len(tasks) < 2 || l.profiles == nil {
		return tasks
	}
	both := &profiles{reader: l.profiles}
	for _, t := range tasks {
		switch t := t.(type) {
		case *batch[storage.UserID, storage.User]:
			both.users = t
		case *batch[storage.UserID, storage.Counts]:
			both.counts = t
		}
	}
	if both.users == nil || both.counts == nil {
		return tasks
	}
	tasks = slices.DeleteFunc(tasks, func(t task) bool { return t == task(both.users) || t == task(both.counts) })
	return append(tasks, both)
}

// answer implements task: the two have been asked for what is at hand.
func (p *profiles) answer() bool { return false }

func (p *profiles) run() {
	defer p.users.done.Done()
	defer p.counts.done.Done()
	defer func() {
		if reason := recover(); reason != nil {
			err := fmt.Errorf("a look-up panicked: %v\n%s", reason, debug.Stack())
			p.users.results, p.counts.results = failures[storage.User](len(p.users.keys), err), failures[storage.Counts](len(p.counts.keys), err)
		}
	}()
	ids := p.users.keys
	if !slices.Equal(ids, p.counts.keys) {
		ids = slices.Concat(p.users.keys, p.counts.keys) // the store reads each once
	}
	read := p.reader.Profiles(p.users.loader.all.ctx, ids)
	p.users.results = make([]storage.Result[storage.User], len(p.users.keys))
	for i, r := range read[:len(p.users.keys)] {
		p.users.results[i] = storage.Result[storage.User]{Value: r.Value.User, Found: r.Value.Exists, Err: r.Err}
	}
	p.counts.results = make([]storage.Result[storage.Counts], len(p.counts.keys))
	for i, r := range read[len(ids)-len(p.counts.keys):] {
		p.counts.results[i] = storage.Result[storage.Counts]{Value: r.Value.Counts, Found: r.Value.Counted, Err: r.Err}
	}
}

// fail implements task.
func (p *profiles) fail(err error) {
	p.users.fail(err)
	p.counts.fail(err)
}

func failures[V any](n int, err error) []storage.Result[V] {
	results := make([]storage.Result[V], n)
	for i := range results {
		results[i].Err = err
	}
	return results
}
