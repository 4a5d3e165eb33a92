package child_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/child"
	"kith/internal/must"
)

func no(context.Context) error { return errors.New("no") }

// What was stopped has ended, and answers no more.
func TestStop(t *testing.T) {
	p, err := child.StartLogged(filepath.Join(t.TempDir(), "log"), exec.Command("sleep", "1000"))
	must.OK(t, err)
	check.That(t, p.Running(), "it does not run")
	for range 2 {
		err := p.Stop()
		must.That(t, err == nil && !p.Running(), "%v", err)
	}
	err = p.Answers(t.Context(), no)
	check.Says(t, "what has ended answers", err, "has ended")
}

// A program that ends at once is reported with its output.
func TestProgramThatFails(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := child.StartLogged(log, exec.Command("/bin/sh", "-c", "echo it is broken"))
	must.OK(t, err)
	err = p.Answers(t.Context(), no)
	check.That(t, err != nil && strings.Contains(err.Error(), "it is broken"), "%v", err)
	_, err = child.StartLogged(log, exec.Command("/no/such/program"))
	check.That(t, err != nil, "a program that is not there starts")
}
