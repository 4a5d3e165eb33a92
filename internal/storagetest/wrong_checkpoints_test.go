package storagetest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"kith/internal/storagetest/oracle"
)

type unknownIsAnError struct{ *oracle.Store }

func (s unknownIsAnError) DeleteCheckpoint(ctx context.Context, name string) error {
	if _, found, _ := s.LoadCheckpoint(ctx, name); !found {
		return fmt.Errorf("there is no %s", name)
	}
	return s.Store.DeleteCheckpoint(ctx, name)
}

type emptyIsNone struct{ *oracle.Store }

func (s emptyIsNone) LoadCheckpoint(ctx context.Context, name string) ([]byte, bool, error) {
	value, _, err := s.Store.LoadCheckpoint(ctx, name)
	return value, len(value) > 0, err
}

type firstValueStays struct{ *oracle.Store }

func (s firstValueStays) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	if _, found, err := s.LoadCheckpoint(ctx, name); found || err != nil {
		return err
	}
	return s.Store.SaveCheckpoint(ctx, name, value)
}

type namesFold struct{ *oracle.Store }

func (s namesFold) LoadCheckpoint(ctx context.Context, name string) ([]byte, bool, error) {
	return s.Store.LoadCheckpoint(ctx, strings.ToLower(name))
}

func (s namesFold) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	return s.Store.SaveCheckpoint(ctx, strings.ToLower(name), value)
}

type deletedIsEmpty struct{ *oracle.Store }

func (s deletedIsEmpty) DeleteCheckpoint(ctx context.Context, name string) error {
	return s.SaveCheckpoint(ctx, name, nil)
}

type sharesValues struct {
	*oracle.Store
	values map[string][]byte
}

func (s sharesValues) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	s.values[name] = value
	return s.Store.SaveCheckpoint(ctx, name, value)
}

func (s sharesValues) LoadCheckpoint(ctx context.Context, name string) ([]byte, bool, error) {
	value, found, err := s.Store.LoadCheckpoint(ctx, name)
	if shared := s.values[name]; found && len(shared) == len(value) && !bytes.Equal(shared, value) {
		return shared, true, err
	}
	return value, found, err
}
