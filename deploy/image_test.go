package deploy_test

import (
	"debug/elf"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// largest is the size that the image may have. Besides the program it contains 0.2 MB of certificates.
const largest = 60_000_000

func lines(text string) []string { return strings.SplitAfter(text, "\n") }

// The program that the tests build is stripped like that of the image. cgo makes less than a megabyte of difference.
func TestImageIsSmall(t *testing.T) {
	info, err := os.Stat(kithtest.Binary(t))
	must.OK(t, err)
	check.That(t, info.Size() <= largest, "the program has %d bytes", info.Size())
}

// buildCommand is the RUN line of the Dockerfile that builds the program.
func buildCommand(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*)$`).FindStringSubmatch(read(t, "Dockerfile"))
	must.That(t, found != nil, "the Dockerfile builds nothing")
	return found[1]
}

func TestDockerfile(t *testing.T) {
	text := read(t, "Dockerfile")
	stages := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text, -1)
	check.Equal(t, "the image is made from", stages[len(stages)-1][1], "scratch")
	_, final, _ := strings.Cut(text, "FROM scratch")
	user := regexp.MustCompile(`(?m)^USER (\d+):\d+$`).FindStringSubmatch(final)
	check.That(t, user != nil && user[1] != "0", "the image's user is %v", user)
	env := started{where: "Dockerfile", env: map[string]string{}}
	for _, pair := range regexp.MustCompile(`(KITH_\w+)=(\S+)`).FindAllStringSubmatch(final, -1) {
		env.env[pair[1]] = pair[2]
	}
	command := regexp.MustCompile(`(?m)^CMD \["(\w+)"\]$`).FindStringSubmatch(final)
	env.args = command[1:]
	addr := env.parsed(t).Serve.Addr
	isReached(t, addr)
	_, port, err := net.SplitHostPort(addr)
	check.That(t, err == nil && strings.Contains(final, "\nEXPOSE "+port+"\n"), "it listens on %s; %v", port, err)
	if health := regexp.MustCompile(`(?m)^HEALTHCHECK .*CMD \["/usr/local/bin/kith", "(\w+)"\]$`).FindStringSubmatch(final); health == nil {
		t.Error("the image has no health check")
	} else {
		env.args = health[1:]
		env.parsed(t)
	}
	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	check.That(t, strings.Contains(text, "FROM golang:"+wanted+"-"), "go.mod wants Go %s", wanted)
	// The command is that of the release, except for names and platforms.
	release := strings.NewReplacer("{{ .Version }}", "$VERSION", "{{ slice .FullCommit 0 12 }}", "$REVISION", ", ", " ").Replace(read(t, "../.goreleaser.yml"))
	for _, flags := range []string{"-trimpath -buildvcs=false", "-s -w -X kith/cli.version=$VERSION -X kith/cli.revision=$REVISION"} {
		check.That(t, strings.Contains(buildCommand(t), flags) && strings.Contains(release, flags), "the Dockerfile and the release do not both build with %s", flags)
	}
}

// TestLongImageBuilds runs the command of the Dockerfile, without Docker. The program must be static.
func TestLongImageBuilds(t *testing.T) {
	testenv.Long(t)
	out := t.TempDir()
	build := exec.Command("bash", "-c", strings.ReplaceAll(buildCommand(t), "/out/", out+"/"))
	build.Dir, build.Env = "..", append(os.Environ(), "VERSION=1.2.3", "REVISION=abc")
	text, err := build.CombinedOutput()
	must.That(t, err == nil, "%v\n%s", err, text)
	program, err := elf.Open(filepath.Join(out, "kith"))
	must.OK(t, err)
	defer program.Close()
	for _, p := range program.Progs {
		check.That(t, p.Type != elf.PT_INTERP, "the program is not static")
	}
	if info, err := os.Stat(filepath.Join(out, "kith")); err != nil || info.Size() > largest {
		t.Errorf("the program has %d bytes; %v", info.Size(), err)
	}
	said, err := exec.Command(filepath.Join(out, "kith"), "version").Output()
	check.That(t, err == nil && strings.HasPrefix(string(said), "kith 1.2.3 (commit abc, "), "%s %v", said, err)
}
