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

	"kith/storage"
)

// Run runs the suite, or only some of it: topics, by their names, or promises, as topic/promise, up to the
// first promise of a topic that fails. Open returns an empty store, which the
// suite closes; it is called about forty times.
func Run(t *testing.T, open func(t *testing.T) storage.Store, only ...string) {
	topics := []func(*harness) any{
		func(h *harness) any { return users{h} },
		func(h *harness) any { return creation{h} },
		func(h *harness) any { return counts{h} },
		func(h *harness) any { return edges{h} },
		func(h *harness) any { return pages{h} },
		func(h *harness) any { return neighbours{h} },
		func(h *harness) any { return packedNeighbours{h} },
		func(h *harness) any { return apply{h} },
		func(h *harness) any { return applyCounts{h} },
		func(h *harness) any { return accounts{h} },
		func(h *harness) any { return identities{h} },
		func(h *harness) any { return changes{h} },
		func(h *harness) any { return inverse{h} },
		func(h *harness) any { return blocking{h} },
		func(h *harness) any { return followRequests{h} },
		func(h *harness) any { return requests{h} },
		func(h *harness) any { return friendships{h} },
		func(h *harness) any { return friendCounts{h} },
		func(h *harness) any { return settling{h} },
		func(h *harness) any { return relationLog{h, open} },
		func(h *harness) any { return leases{h} },
		func(h *harness) any { return checkpoints{h} },
		func(h *harness) any { return concurrency{h} },
		func(h *harness) any { return changesAtOnce{h} },
		func(h *harness) any { return cancellation{h} },
		func(h *harness) any { return lifecycle{h, open} },
		func(h *harness) any { return profile{h} },
		func(h *harness) any { return blockLists{h} },
		func(h *harness) any { return count{h} },
		func(h *harness) any { return marks{h} },
		func(h *harness) any { return attributes{h} },
		func(h *harness) any { return messages{h} },
		func(h *harness) any { return seen{h} },
		func(h *harness) any { return userLists{h} },
		func(h *harness) any { return imports{h} },
		func(h *harness) any { return popular{h, open} },
		func(h *harness) any { return posts{h} },
		func(h *harness) any { return postRows{h} },
		func(h *harness) any { return comments{h} },
		func(h *harness) any { return favorites{h} },
		func(h *harness) any { return reactions{h} },
		func(h *harness) any { return relations{h} },
		func(h *harness) any { return search{h} },
		func(h *harness) any { return states{h} },
		func(h *harness) any { return moderation{h} },
		func(h *harness) any { return rows{h} },
		func(h *harness) any { return endings{h} },
		func(h *harness) any { return erase{h} },
		func(h *harness) any { return userList{h} },
		func(h *harness) any { return shardReader{h} },
		func(h *harness) any { return beside{h} },
		func(h *harness) any { return profiles{h} },
		func(h *harness) any { return lists{h} },
		func(h *harness) any { return bundles{h} },
		func(h *harness) any { return comparer{h} },
		func(h *harness) any { return repairer{h} },
		func(h *harness) any { return histories{h} },
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
		if name, _, _ = strings.Cut(name, "/"); !slices.Contains(names, name) {
			t.Errorf("there is no topic %q", name)
		}
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

// runPromises runs the wanted ones among the exported methods of a topic, in the order of their names.
func runPromises(t *testing.T, topic any, some bool, wanted func(string) bool) {
	value := reflect.ValueOf(topic)
	for i := range value.NumMethod() {
		if name := value.Type().Method(i).Name; wanted(name) && !(some && t.Failed()) {
			t.Run(name, value.Method(i).Interface().(func(*testing.T)))
		}
	}
}

// opened opens a store for the duration of a test.
func opened(t *testing.T, open func(t *testing.T) storage.Store) storage.Store {
	t.Helper()
	store := open(t)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}
