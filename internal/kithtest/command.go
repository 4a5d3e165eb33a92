package kithtest

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/child"
	"kith/internal/logged"
	"kith/internal/must"
)

// patience bounds every wait. It is generous, because it is reached only if something is wrong.
const patience = 3 * time.Minute

// An Option changes how the program is started.
type Option func(*exec.Cmd)

// Args are arguments.
func Args(args ...string) Option {
	return func(c *exec.Cmd) { c.Args = append(c.Args, args...) }
}

// Env adds variables, NAME=value. The program sees no others except PATH, HOME, GOGC, KITH_ADMIN_ADDR, KITH_SLOW_OPERATION and KITH_WRITE_LIMIT.
// The last two are off: on a busy machine the log would have lines about operations with which a test finds nothing wrong, and tests write
// faster than people. GOGC is what a gateway sets by itself: with it, a command that ends at once collects no garbage, which was a fifth of
// what the shortest ones take.
func Env(variables ...string) Option {
	return func(c *exec.Cmd) { c.Env = append(c.Env, variables...) }
}

// Dir is the working directory. Defaults to an empty one.
func Dir(path string) Option {
	return func(c *exec.Cmd) { c.Dir = path }
}

// End is how a run ended.
type End struct {
	Code           int // -1: by a signal
	Stdout, Stderr string
	Took           time.Duration
}

// Run runs the program to its end.
func Run(t testing.TB, options ...Option) End {
	t.Helper()
	c := Launch(t, options...)
	return c.Wait(t)
}

// Ends runs the program to its end, which has to be with a code.
func Ends(t testing.TB, code int, options ...Option) End {
	t.Helper()
	c := Launch(t, options...)
	end := c.Wait(t)
	must.That(t, end.Code == code, "%q ended with %d, not %d\n%s%s", c.process.Cmd.Args[1:], end.Code, code, end.Stdout, end.Stderr)
	return end
}

// Fails checks that a run ended with a code, and that its standard error has some parts.
func (e End) Fails(t testing.TB, what any, code int, parts ...string) {
	t.Helper()
	check.That(t, e.Code == code, "%v: %+v, want the code %d", what, e, code)
	check.Has(t, what, e.Stderr, parts...)
}

// Command is the running program.
type Command struct {
	process        *child.Process
	stdout, stderr logged.Text
}

// Launch starts the program and does not wait for anything. It is killed when t
// ends, and with the test process.
func Launch(t testing.TB, options ...Option) *Command {
	t.Helper()
	cmd := exec.Command(Binary(t))
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GOGC=400", "KITH_ADMIN_ADDR=127.0.0.1:0", "KITH_SLOW_OPERATION=0", "KITH_WRITE_LIMIT=0"}
	for _, o := range options {
		o(cmd)
	}
	c := &Command{}
	cmd.Stdout, cmd.Stderr = &c.stdout, &c.stderr
	if signal.Ignored(os.Interrupt) { // as a script's jobs in the background have it: the program would inherit that
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	var err error
	c.process, err = child.Start(cmd)
	must.OK(t, err)
	t.Cleanup(c.process.Kill)
	return c
}

// Wait waits until the program has ended by itself.
func (c *Command) Wait(t testing.TB) End {
	t.Helper()
	select {
	case <-c.process.Gone:
	case <-time.After(patience):
		t.Fatalf("%q still runs after %s\nstdout: %s\nstderr: %s", c.process.Cmd.Args[1:], patience, c.Stdout(), c.Stderr())
	}
	return End{c.process.Cmd.ProcessState.ExitCode(), c.Stdout(), c.Stderr(), c.process.Took}
}

// Signal sends a signal; a program that has ended is no error.
func (c *Command) Signal(s os.Signal) { _ = c.process.Signal(s) }

// Interrupt asks the program to end, as Ctrl-C does, and waits until it has.
func (c *Command) Interrupt(t testing.TB) End {
	t.Helper()
	c.Signal(os.Interrupt)
	return c.Wait(t)
}

// Kill ends the program as a crash does (kill -9).
func (c *Command) Kill(t testing.TB) End {
	t.Helper()
	c.Signal(syscall.SIGKILL)
	return c.Wait(t)
}

// PID is the program's process.
func (c *Command) PID() int { return c.process.PID() }

// Ended reports whether the program has ended.
func (c *Command) Ended() bool { return !c.process.Running() }

// EndsWithin waits for a time for the program to end by itself, and reports whether it has.
func (c *Command) EndsWithin(d time.Duration) bool {
	select {
	case <-c.process.Gone:
		return true
	case <-time.After(d):
		return c.Ended()
	}
}

// Stdout is what the program has written to its standard output so far.
func (c *Command) Stdout() string { return c.stdout.String() }

// Stderr is what the program has written to its standard error so far.
func (c *Command) Stderr() string { return c.stderr.String() }

// Until waits for a condition on the running program.
func (c *Command) Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); Pause(began) {
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %s; stdout: %s; stderr: %s", what, patience, c.Stdout(), c.Stderr())
		}
	}
}

// Pause waits before a condition is checked again that has not held since a time. Checking takes processor time of the program and of its
// stores, so what takes long is checked less often: a wait becomes longer by a tenth at most.
func Pause(began time.Time) {
	time.Sleep(min(max(time.Since(began)/10, 15*time.Millisecond), 300*time.Millisecond))
}
