//go:build unix && !linux

package testenv

// stopped cannot be asked without /proc; SIGSTOP takes effect at once or nearly so.
func stopped(int) bool { return true }
