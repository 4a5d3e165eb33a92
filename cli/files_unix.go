//go:build unix

package cli

import "golang.org/x/sys/unix"

// openFiles is how many files a program of this user may have open. Go raises its own limit to this
// by itself.
func openFiles() (uint64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return uint64(limit.Max), err //nolint:unconvert // its type differs by system
}
