//go:build unix

package cli

import (
	"time"

	"golang.org/x/sys/unix"
)

// openFiles is how many files a program of this user may have open. Go raises its own limit to this
// by itself.
func openFiles() (uint64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return uint64(limit.Max), err //nolint:unconvert // its type differs by system
}

// processorTime is how long processors have worked for this process.
func processorTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return time.Since(started)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
