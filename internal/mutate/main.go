// Command mutate breaks the code at random places, one at a time, runs the tests of the package, and
// lists the changes that no test has noticed: these show conditions that no test checks.
//
//	go run ./internal/mutate -n 25 -seed 1 ./social ./storage/cache/localcache
//
// The files are not changed: go test reads the changed one through -overlay. A change that does not
// compile does not count. The status is 1 if there are more survivors than -survivors.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	n := flag.Int("n", 25, "how many changes are tested in each package")
	seed := flag.Uint64("seed", 1, "which")
	most := flag.Int("survivors", 5, "how many changes may go unnoticed")
	flag.Parse()
	survivors := 0
	for _, dir := range flag.Args() {
		left, err := mutate(dir, *n, *seed)
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutate: %s: %v\n", dir, err)
			os.Exit(2)
		}
		survivors += left
	}
	fmt.Printf("%d changes went unnoticed\n", survivors)
	if survivors > *most {
		os.Exit(1)
	}
}

// mutate returns how many changes of a package went unnoticed.
func mutate(dir string, n int, seed uint64) (survivors int, err error) {
	changes, err := changesOf(dir)
	if err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	scratch, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	tests, err := measured(dir, scratch)
	if err != nil {
		return 0, err
	}
	tested := 0
	for _, c := range changes {
		if tested == n {
			break
		}
		overlay, err := c.overlay(scratch)
		if err != nil {
			return survivors, err
		}
		if _, err := tests.compile("-overlay", overlay); err != nil {
			continue
		}
		tested++
		if noticed, by := tests.verdict(); noticed {
			fmt.Printf("noticed   %s  (%s)\n", c, by)
		} else {
			survivors++
			fmt.Printf("SURVIVED  %s\n", c)
		}
	}
	fmt.Printf("%s: %d of %d changes went unnoticed, of %d that there are\n", dir, survivors, tested, len(changes))
	return survivors, nil
}

// overlay writes the changed file, and the file that points go to it.
func (c change) overlay(scratch string) (path string, err error) {
	changed := filepath.Join(scratch, "changed.go")
	if err := os.WriteFile(changed, []byte(c.text()), 0o600); err != nil {
		return "", err
	}
	original, err := filepath.Abs(c.file)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(scratch, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

func (c change) String() string {
	return fmt.Sprintf("%s:%d  %s  ->  %s", c.file, c.line, oneLine(c.source[c.from:c.to]), oneLine(c.by))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
