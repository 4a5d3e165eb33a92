package docs_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/testenv"
)

// TestLongWaysOfTheReadme goes the README's three ways to a first answer, and begins the tutorial, as somebody would who has nothing but a shell, Go
// and make. It prints how long each takes. What would come from the internet comes from this machine: the archive and the container are made of what the
// Dockerfile builds, and Go modules are in its cache.
func TestLongWaysOfTheReadme(t *testing.T) {
	testenv.Long(t)
	readme := read(t, filepath.Join(root, "README.md"))
	commands := submatches("(?s)```sh\n(.*?)```", readme)
	if len(commands) < 4 || !strings.HasPrefix(commands[0], "tar -xzf ") || !strings.HasPrefix(commands[1], "docker run ") || commands[2] != "make run\n" {
		t.Fatalf("the ways are %q", commands)
	}
	query := submatches("(?s)```graphql\n(.*?)```", readme)[0]
	tree, home := checkout(t), t.TempDir()

	t.Run("source", func(t *testing.T) {
		addr := freeAddress(t)
		run := bare(tree, home, `make run ARGS="--addr `+addr+` --admin-addr 127.0.0.1:0"`)
		answers(t, "make run, with modules at hand and an empty build cache", run, addr, query)
		began := time.Now()
		out, err := bare(tree, home, submatches("(?s)```sh\n(.*?)```", read(t, "start/tutorial.md"))[0]).CombinedOutput()
		must.That(t, err == nil, "%v\n%s", err, out)
		t.Logf("the tutorial's make build after it: %.0f s", time.Since(began).Seconds())
	})

	out := t.TempDir()
	dockerfile := read(t, filepath.Join(root, "deploy/Dockerfile"))
	build := exec.Command("bash", "-c", strings.ReplaceAll(submatches(`(?m)^RUN (CGO_ENABLED=0 go build .*)$`, dockerfile)[0], "/out/", out+"/"))
	build.Dir = tree
	text, err := build.CombinedOutput()
	must.That(t, err == nil, "%v\n%s", err, text)
	t.Run("archive", func(t *testing.T) {
		addr, folder := freeAddress(t), t.TempDir()
		name := "kith_1.0.0_linux_" + runtime.GOARCH
		text, err := exec.Command("tar", "-czf", filepath.Join(folder, name+".tar.gz"), "-C", out, "--transform", "s|^|"+name+"/|", "kith").CombinedOutput()
		must.That(t, err == nil, "%v\n%s", err, text)
		run := bare(folder, home, strings.ReplaceAll(commands[0], "amd64", runtime.GOARCH))
		run.Env = append(run.Env, "KITH_ADDR="+addr)
		answers(t, "the archive", run, addr, query)
	})
	t.Run("container", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can change the root")
		}
		addr, image := freeAddress(t), t.TempDir()
		_, final, _ := strings.Cut(dockerfile, "FROM scratch")
		user := 65532
		for _, path := range []string{"usr/local/bin", "var/lib/kith/data"} {
			must.OK(t, os.MkdirAll(filepath.Join(image, path), 0o755))
		}
		must.OK(t, os.Chmod(image, 0o755))
		must.OK(t, os.Chown(filepath.Join(image, "var/lib/kith/data"), user, user))
		program := must.File(t, filepath.Join(out, "kith"))
		entry := submatches(`(?m)^ENTRYPOINT \["(.*)"\]$`, final)[0]
		must.OK(t, os.WriteFile(filepath.Join(image, entry), program, 0o755))
		_, arguments, _ := strings.Cut(strings.TrimSpace(commands[1]), ":VERSION ")
		run := &exec.Cmd{
			Path: entry, Args: append([]string{entry}, strings.Fields(arguments)...), Dir: submatches(`(?m)^WORKDIR (.*)$`, final)[0],
			Env:         append(regexp.MustCompile(`KITH_\w+=\S+`).FindAllString(final, -1), "KITH_ADDR="+addr),
			SysProcAttr: &syscall.SysProcAttr{Chroot: image, Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}},
		}
		answers(t, "the container", run, addr, query)
	})
}

// checkout copies the tree, as a clone would have it.
func checkout(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	copied := exec.Command("bash", "-ec", `set -o pipefail; git ls-files -z | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$0"`, tree)
	copied.Dir = root
	if out, err := copied.CombinedOutput(); err != nil {
		testenv.Missing(t, fmt.Sprintf("this is no git checkout: %v %s", err, out))
	}
	return tree
}

// bare runs a command with an empty home, in which Go keeps everything.
func bare(folder, home, command string) *exec.Cmd {
	c := exec.Command("bash", "-ec", command)
	cache, _ := exec.Command("go", "env", "GOMODCACHE").Output()
	proxy, _ := exec.Command("go", "env", "GOPROXY").Output()
	c.Dir = folder
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GOFLAGS=-modcacherw",
		"GOPROXY=file://" + strings.TrimSpace(string(cache)) + "/cache/download," + strings.TrimSpace(string(proxy))}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	return l.Addr().String()
}

// answers starts a program, and prints how long it takes to answer a query. Then the program is interrupted.
func answers(t *testing.T, what string, run *exec.Cmd, addr, query string) {
	t.Helper()
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	began := time.Now()
	must.OK(t, run.Start())
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	defer func() {
		target := run.Process.Pid
		if run.SysProcAttr.Setpgid {
			target = -target
		}
		_ = syscall.Kill(target, syscall.SIGINT)
		<-ended
	}()
	body := fmt.Sprintf(`{"query": %q}`, query)
	for {
		if answer, err := http.Post("http://"+addr+"/graphql", "application/json", strings.NewReader(body)); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s: %v\n%s", what, err, said.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Logf("%s: %.1f s to the first answer", what, time.Since(began).Seconds())
}
