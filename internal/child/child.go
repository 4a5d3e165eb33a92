// Package child runs programs that end with this process, however it ends, if the system allows that.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Patience bounds every wait for a server to start or to end. It is generous, because it is reached only if something is wrong.
const Patience = 90 * time.Second

// Process is a program that was started.
type Process struct {
	Cmd  *exec.Cmd
	Gone chan struct{} // closed when it has ended
	Took time.Duration // from its start to its end
	log  string
}

// Start starts a program.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{Cmd: cmd, Gone: make(chan struct{})}
	cmd.SysProcAttr = attr()
	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the *thread* that made the child ends, so this thread is kept, unused, for as long
		// as the child lives.
		runtime.LockOSThread()
		began := time.Now()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its state
			p.Took = time.Since(began)
			close(p.Gone)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// StartLogged starts a program with its output added to a file.
func StartLogged(log string, cmd *exec.Cmd) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	p, err := Start(cmd)
	if err == nil {
		p.log = log
	}
	return p, err
}

// PID is the id of the process.
func (p *Process) PID() int { return p.Cmd.Process.Pid }

// Running reports whether the program has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.Gone:
		return false
	default:
		return true
	}
}

// Signal sends a signal. A program that has ended already is no error.
func (p *Process) Signal(s os.Signal) error {
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Ends waits until the program has ended. It reports whether it has within [Patience].
func (p *Process) Ends() bool {
	select {
	case <-p.Gone:
		return true
	case <-time.After(Patience):
		return false
	}
}

// Stop asks the program to end and waits until it has ended. If it does not end, it is killed.
func (p *Process) Stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if !p.Ends() {
		p.Kill()
		return fmt.Errorf("%s did not end within %s", p.Cmd.Path, Patience)
	}
	return nil
}

// Kill ends the program at once, and waits until it has ended.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // it may have ended already
	<-p.Gone
}

// Answers waits until a program with a log answers, as ask sees it.
func (p *Process) Answers(ctx context.Context, ask func(context.Context) error) error {
	for deadline := time.Now().Add(Patience); ; {
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := ask(asking)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.Gone:
			return fmt.Errorf("%s has ended: %w; its log ends:\n%s", p.Cmd.Path, err, Tail(p.log, 20))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not answer: %w; its log ends:\n%s", p.Cmd.Path, err, Tail(p.log, 20))
		}
	}
}

// Tail returns the last lines of a log, for an error message.
func Tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Find returns the path of a program, in the PATH or where servers are: Debian keeps mariadbd in /usr/sbin, which is not in every user's PATH.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, folder := range []string{"/usr/sbin", "/usr/local/sbin", "/usr/libexec"} {
		if err == nil {
			return path, nil
		}
		path, err = exec.LookPath(folder + "/" + name)
	}
	if err != nil {
		return "", fmt.Errorf("%s is not installed", name)
	}
	return path, nil
}
