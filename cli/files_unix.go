//go:build unix

package cli

import (
	"time"

	"golang.org/x/sys/unix"
)

// openFiles is how many files this program may have open. Go has raised that to what the system allows.
func openFiles() (uint64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err //nolint:unconvert // its type differs by system
}

// processorTime is how long processors have worked for this process.
func processorTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return time.Since(started)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
