//go:build !linux

package child

import "syscall"

// attr is nil, because only Linux can tie a child's life to its parent's.
func attr() *syscall.SysProcAttr { return nil }
