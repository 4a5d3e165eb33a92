package storage

import "context"

// Checkpoints keep how far something that runs for long has come, by names of at most 190 ASCII
// characters that do not end in a space.
type Checkpoints interface {
	// LoadCheckpoint returns what was last saved under a name, and whether there is such a
	// thing.
	LoadCheckpoint(ctx context.Context, name string) (value []byte, found bool, err error)

	// SaveCheckpoint replaces what is kept under a name. When it returns, the value survives a
	// crash, like everything that was written before it.
	SaveCheckpoint(ctx context.Context, name string, value []byte) error

	// DeleteCheckpoint forgets a name. An unknown one is no error.
	DeleteCheckpoint(ctx context.Context, name string) error
}
