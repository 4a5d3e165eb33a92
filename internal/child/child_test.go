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
		if err := p.Stop(); err != nil || p.Running() {
			t.Fatal(err)
		}
	}
	if err := p.Answers(t.Context(), no); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("what has ended answers: %v", err)
	}
}

// A program that ends at once is reported with its output.
func TestProgramThatFails(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := child.StartLogged(log, exec.Command("/bin/sh", "-c", "echo it is broken"))
	must.OK(t, err)
	if err := p.Answers(t.Context(), no); err == nil || !strings.Contains(err.Error(), "it is broken") {
		t.Error(err)
	}
	if _, err := child.StartLogged(log, exec.Command("/no/such/program")); err == nil {
		t.Error("a program that is not there starts")
	}
}
