package binlog_test

import "syscall"

// childAttr makes a child die with this process.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
