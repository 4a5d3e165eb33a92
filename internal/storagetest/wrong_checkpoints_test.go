package storagetest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about leases, checkpoints and the log.
var checkpointMistakes = []mistake{
	{"an owner gets another slot", func(s *oracle.Store, w *double.Store) {
		// It gives an owner who has a slot the next one.
		w.Instead.Lease = func(ctx context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
			for {
				if slot, err := s.Lease(ctx, kind, owner, slots, now, until); err != nil || slot == slots-1 {
					return slot, err
				}
				owner += "'"
			}
		}
	}, "leases/AnOwnerKeepsItsSlot", promiseOnly},
	{"a release takes the slot from its next owner", func(s *oracle.Store, w *double.Store) {
		w.Instead.Release = func(ctx context.Context, kind, owner string, until storage.Micros) error {
			if err := s.Release(ctx, kind, owner, until); err != nil {
				return err
			}
			return s.Release(ctx, kind, "another", until) // its next owner
		}
	}, "leases/AReleasedSlotIsTaken", promiseOnly},
	{"slots are leased without a lock", func(s *oracle.Store, w *double.Store) {
		w.Instead.Lease = func(ctx context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
			// It looks for the slot that is free now. Others may take theirs in between.
			slot, err := s.Lease(ctx, kind, "a look", slots, now, until)
			s.Release(ctx, kind, "a look", 0)
			if err != nil {
				return 0, err
			}
			time.Sleep(100 * time.Microsecond)
			if _, err := s.Lease(ctx, kind, owner, slots, now, until); err != nil {
				return 0, err
			}
			return slot, nil
		}
	}, "leases/ManyMayAskAtOnce", lostRace},
	{"an unknown checkpoint cannot be deleted", func(s *oracle.Store, w *double.Store) {
		w.Instead.DeleteCheckpoint = func(ctx context.Context, name string) error {
			if _, found, _ := s.LoadCheckpoint(ctx, name); !found {
				return fmt.Errorf("there is no %s", name)
			}
			return s.DeleteCheckpoint(ctx, name)
		}
	}, "checkpoints/AnUnknownNameHasNone", promiseOnly},
	{"an empty checkpoint is none", func(s *oracle.Store, w *double.Store) {
		w.Instead.LoadCheckpoint = func(ctx context.Context, name string) ([]byte, bool, error) {
			value, _, err := s.LoadCheckpoint(ctx, name)
			return value, len(value) > 0, err
		}
	}, "checkpoints/TheValueComesBack", promiseOnly},
	{"the first checkpoint stays", func(s *oracle.Store, w *double.Store) {
		w.Instead.SaveCheckpoint = func(ctx context.Context, name string, value []byte) error {
			if _, found, err := s.LoadCheckpoint(ctx, name); found || err != nil {
				return err
			}
			return s.SaveCheckpoint(ctx, name, value)
		}
	}, "checkpoints/TheLastValueCounts", promiseOnly},
	{"names of checkpoints have no case", func(s *oracle.Store, w *double.Store) {
		w.Instead.LoadCheckpoint = func(ctx context.Context, name string) ([]byte, bool, error) {
			return s.LoadCheckpoint(ctx, strings.ToLower(name))
		}
		w.Instead.SaveCheckpoint = func(ctx context.Context, name string, value []byte) error {
			return s.SaveCheckpoint(ctx, strings.ToLower(name), value)
		}
	}, "checkpoints/NamesAreApart", promiseOnly},
	{"deleted checkpoints are empty", func(s *oracle.Store, w *double.Store) {
		w.Instead.DeleteCheckpoint = func(ctx context.Context, name string) error { return s.SaveCheckpoint(ctx, name, nil) }
	}, "checkpoints/WhatIsDeletedIsForgotten", promiseOnly},
	{"checkpoints share the caller's bytes", func(s *oracle.Store, w *double.Store) {
		given := map[string][]byte{}
		w.Instead.SaveCheckpoint = func(ctx context.Context, name string, value []byte) error {
			given[name] = value
			return s.SaveCheckpoint(ctx, name, value)
		}
		w.Instead.LoadCheckpoint = func(ctx context.Context, name string) ([]byte, bool, error) {
			value, found, err := s.LoadCheckpoint(ctx, name)
			if shared := given[name]; found && len(shared) == len(value) {
				return shared, true, err
			}
			return value, found, err
		}
	}, "checkpoints/ValuesAreCopied", promiseOnly},
	{"the log has one side", func(s *oracle.Store, w *double.Store) {
		w.Instead.ReadLog = func(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
			entries, err := s.ReadLog(ctx, shard, after, limit)
			return slices.DeleteFunc(entries, func(e storage.LogEntry) bool { return e.Side == storage.Inverse }), err
		}
	}, "relationLog/EveryRowThatIsAppliedIsThereOnce", historiesToo},
	{"the log has follows only", func(s *oracle.Store, w *double.Store) {
		// It has no requests in its log.
		w.Instead.ReadLog = func(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
			entries, err := s.ReadLog(ctx, shard, after, limit)
			return slices.DeleteFunc(entries, func(e storage.LogEntry) bool { return e.Side.Truth() == storage.Requests }), err
		}
	}, "relationLog/EveryRowOfARequestIsThereOnce", historiesToo},
}
