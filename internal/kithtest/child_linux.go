package kithtest

import "syscall"

// childAttr makes the program die with the test process, and keeps the terminal's
// Ctrl-C from it.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
