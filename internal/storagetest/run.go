// Package storagetest is the conformance suite of the contract in package
// storage: every engine and every decorator passes it.
//
// An exported method of a topic is one promise of the contract and runs as the
// subtest topic/promise, so a failure names the promise that was broken. Each topic
// starts with an empty store, which its promises share. The promises do not disturb one another
// because each uses ids of its own (see harness.ids).
package storagetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

// Run runs the suite, or only some of it: topics, by their names, or promises, as topic/promise, up to the
// first promise of a topic that fails. Open returns an empty store, which the
// suite closes; it is called about forty times.
func Run(t *testing.T, open func(t *testing.T) storage.Store, only ...string) {
	topics := []func(*harness) topic{
		func(h *harness) topic { return users{h} },
		func(h *harness) topic { return creation{h} },
		func(h *harness) topic { return counts{h} },
		func(h *harness) topic { return edges{h} },
		func(h *harness) topic { return pages{h} },
		func(h *harness) topic { return neighbours{h} },
		func(h *harness) topic { return packedNeighbours{h} },
		func(h *harness) topic { return apply{h} },
		func(h *harness) topic { return applyCounts{h} },
		func(h *harness) topic { return accounts{h} },
		func(h *harness) topic { return identities{h} },
		func(h *harness) topic { return changes{h} },
		func(h *harness) topic { return inverse{h} },
		func(h *harness) topic { return blocking{h} },
		func(h *harness) topic { return followRequests{h} },
		func(h *harness) topic { return requests{h} },
		func(h *harness) topic { return friendships{h} },
		func(h *harness) topic { return friendCounts{h} },
		func(h *harness) topic { return settling{h} },
		func(h *harness) topic { return relationLog{h, open} },
		func(h *harness) topic { return leases{h} },
		func(h *harness) topic { return checkpoints{h} },
		func(h *harness) topic { return concurrency{h} },
		func(h *harness) topic { return changesAtOnce{h} },
		func(h *harness) topic { return cancellation{h} },
		func(h *harness) topic { return lifecycle{h, open} },
		func(h *harness) topic { return profile{h} },
		func(h *harness) topic { return blockLists{h} },
		func(h *harness) topic { return count{h} },
		func(h *harness) topic { return marks{h} },
		func(h *harness) topic { return attributes{h} },
		func(h *harness) topic { return messages{h} },
		func(h *harness) topic { return seen{h} },
		func(h *harness) topic { return userLists{h} },
		func(h *harness) topic { return imports{h} },
		func(h *harness) topic { return popular{h, open} },
		func(h *harness) topic { return posts{h} },
		func(h *harness) topic { return postRows{h} },
		func(h *harness) topic { return comments{h} },
		func(h *harness) topic { return favorites{h} },
		func(h *harness) topic { return reactions{h} },
		func(h *harness) topic { return relations{h} },
		func(h *harness) topic { return search{h} },
		func(h *harness) topic { return states{h} },
		func(h *harness) topic { return moderation{h} },
		func(h *harness) topic { return rows{h} },
		func(h *harness) topic { return endings{h} },
		func(h *harness) topic { return erase{h} },
		func(h *harness) topic { return userList{h} },
		func(h *harness) topic { return shardReader{h} },
		func(h *harness) topic { return beside{h} },
		func(h *harness) topic { return profiles{h} },
		func(h *harness) topic { return lists{h} },
		func(h *harness) topic { return bundles{h} },
		func(h *harness) topic { return comparer{h} },
		func(h *harness) topic { return repairer{h} },
		func(h *harness) topic { return histories{h} },
	}
	var names []string
	for _, topic := range topics {
		h := new(harness)
		promises := topic(h)
		name := strings.TrimPrefix(fmt.Sprintf("%T", promises), "storagetest.")
		names = append(names, name)
		wanted := wantedOf(name, only)
		if wanted == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			h.store = opened(t, open)
			runPromises(t, promises, len(only) > 0, wanted)
		})
	}
	for _, name := range only {
		name, _, _ = strings.Cut(name, "/")
		check.That(t, slices.Contains(names, name), "there is no topic %q", name)
	}
}

// wantedOf says which promises of a topic are asked for; nil: none.
func wantedOf(topic string, only []string) func(promise string) bool {
	if len(only) == 0 || slices.Contains(only, topic) {
		return func(string) bool { return true }
	}
	if slices.ContainsFunc(only, func(one string) bool { return strings.HasPrefix(one, topic+"/") }) {
		return func(promise string) bool { return slices.Contains(only, topic+"/"+promise) }
	}
	return nil
}

// runPromises runs the wanted ones among the exported methods of a topic, in the order of their names. What is promised of a side is so of
// each of the topic's sides.
func runPromises(t *testing.T, topic topic, some bool, wanted func(string) bool) {
	value := reflect.ValueOf(topic)
	for i := range value.NumMethod() {
		name := value.Type().Method(i).Name
		if !wanted(name) || some && t.Failed() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			switch promise := value.Method(i).Interface().(type) {
			case func(*testing.T):
				promise(t)
			case func(*testing.T, storage.Side):
				onSides(t, topic.sides(), promise)
			default:
				t.Fatalf("a promise that takes %T", promise)
			}
		})
	}
}

// topic has promises as its exported methods.
type topic interface{ sides() []storage.Side }

// opened opens a store for the duration of a test.
func opened(t *testing.T, open func(t *testing.T) storage.Store) storage.Store {
	t.Helper()
	store := open(t)
	t.Cleanup(func() { check.Is(t, "close", store.Close(), nil) })
	return store
}
