//go:build unix && !linux

package testenv

import "syscall"

// childAttr puts a child in a process group of its own. Only Linux can tie its
// life to the parent's.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// stopped cannot be asked without /proc; SIGSTOP takes effect at once or nearly so.
func stopped(int) bool { return true }
