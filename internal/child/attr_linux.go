package child

import "syscall"

// attr makes a child die with its parent, and puts it in a process group of its own so that Ctrl-C reaches the parent only, which ends it in
// order.
func attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
