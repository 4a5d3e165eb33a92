package program_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// `kith changes` that is asked to stop ends without a word and with 0, and who goes on from its last line misses nothing. If nobody reads its
// output any more, it ends by SIGPIPE, as any command in a pipe does.
func TestChangesEndsWithItsReader(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	location := "sqlite:" + filepath.Join(folder, "kith.db")
	store := kithtest.Args("--store", location)
	edges := written(t, "edges.txt", "1 2\n")
	kithtest.Ends(t, 0, kithtest.Args("import", edges), store)
	gateway := kithtest.Start(t, kithtest.Args("--jwt-secret", secret), store)
	api := apitest.At(t, gateway.URL, signed(t, jwt.MapClaims{"sub": "1"}))
	follow := func(changes int) {
		t.Helper()
		for i := range changes {
			api.Ask(fmt.Sprintf(`mutation { %s(userId: 2) { changed } }`, []string{"unfollow", "follow"}[i%2]), nil).Whole()
		}
	}
	// lines are the follows of an output by the ids of their events, with the cursor of the last one.
	lines := func(output string) (ids []string, cursor string) {
		t.Helper()
		for line := range strings.Lines(output) {
			var e struct{ ID, Cursor string }
			err := json.Unmarshal([]byte(line), &e)
			must.That(t, err == nil && strings.HasSuffix(line, "\n"), "%q: %v", line, err)
			if cursor = e.Cursor; strings.Contains(e.ID, "/follows/") { // others tell where the stream is
				ids = append(ids, e.ID)
			}
		}
		return ids, cursor
	}
	changes := func(args ...string) *kithtest.Command {
		return kithtest.Launch(t, kithtest.Args(append([]string{"changes", "--kinds=follows"}, args...)...), store)
	}

	whole := changes()
	whole.Until(t, "the beginning", func() bool { follow(2); return whole.Stdout() != "" })
	_, begin := lines(whole.Stdout()[:strings.Index(whole.Stdout(), "\n")+1])
	reader := changes("--after", begin)
	reader.Until(t, "changes", func() bool { follow(2); return strings.Count(reader.Stdout(), "\n") > 3 })
	reader.Signal(syscall.SIGTERM)
	end := reader.Wait(t)
	check.That(t, end.Code == 0 && end.Stderr == "", "SIGTERM ends it with %d: %q", end.Code, end.Stderr)
	follow(4)
	got, cursor := lines(end.Stdout)
	more, _ := lines(kithtest.Run(t, kithtest.Args("changes", "--kinds=follows", "--until-now", "--after", cursor), store).Stdout)
	all, _ := lines(kithtest.Run(t, kithtest.Args("changes", "--kinds=follows", "--until-now", "--after", begin), store).Stdout)
	union := slices.Compact(append(got, more...))
	check.That(t, slices.Equal(union, all) && len(more) >= 4, "it told %q, and then %q, of %q", got, more, all)

	piped := exec.Command(kithtest.Binary(t), "changes", "--store", location, "--after", begin)
	read, write, err := os.Pipe()
	must.OK(t, err)
	var said bytes.Buffer
	piped.Stdout, piped.Stderr = write, &said
	must.OK(t, piped.Start())
	write.Close()
	_, err = bufio.NewReader(read).ReadString('\n')
	must.OK(t, err)
	read.Close()
	ended := make(chan error, 1)
	go func() { ended <- piped.Wait() }()
	gateway.Until(t, "the end of the pipe's writer", func() bool { follow(2); return len(ended) > 0 })
	<-ended
	status := piped.ProcessState.Sys().(syscall.WaitStatus)
	check.That(t, status.Signal() == syscall.SIGPIPE && said.Len() == 0, "it ended by %s, and said %q", piped.ProcessState, said.String())
}
