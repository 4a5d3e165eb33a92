package oracle

import (
	"bytes"
	"context"

	"kith/storage"
)

var _ storage.Checkpoints = (*Store)(nil)

// LoadCheckpoint implements [storage.Checkpoints].
func (s *Store) LoadCheckpoint(ctx context.Context, name string) ([]byte, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, found := s.checkpoints[name]
	return bytes.Clone(value), found, nil
}

// SaveCheckpoint implements [storage.Checkpoints].
func (s *Store) SaveCheckpoint(ctx context.Context, name string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkpoints[name] = bytes.Clone(value)
	return nil
}

// DeleteCheckpoint implements [storage.Checkpoints].
func (s *Store) DeleteCheckpoint(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.checkpoints, name)
	return nil
}
