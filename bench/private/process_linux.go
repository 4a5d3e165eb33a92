package private

import "syscall"

// childAttr makes a program die with this one, and keeps the terminal's Ctrl-C from it: this program stops it in order.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
