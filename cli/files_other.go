//go:build !unix

package cli

import (
	"errors"
	"time"
)

func openFiles() (uint64, error) { return 0, errors.ErrUnsupported }

// processorTime is as long as processors have worked for this process at most.
func processorTime() time.Duration { return time.Since(started) }
