package storage

import "context"

// Checkpoints stores the progress of long-running work by name. A name is at most 190 ASCII
// characters that do not end in a space.
type Checkpoints interface {
	// LoadCheckpoint returns the value last saved under a name, and whether there is one.
	LoadCheckpoint(ctx context.Context, name string) (value []byte, found bool, err error)

	// SaveCheckpoint replaces the value of a name. When it returns, the value survives a crash, and
	// so does everything written before it.
	SaveCheckpoint(ctx context.Context, name string, value []byte) error

	// DeleteCheckpoint deletes the value of a name. If there is none, that is no error.
	DeleteCheckpoint(ctx context.Context, name string) error
}
