package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/testenv"
)

// patience is how long one fault may stay unfound.
const patience = 10 * time.Minute

// foundBy are the faults of testdata, and the property that each breaks first.
var foundBy = map[string]string{
	"added-log-unread":  allTold,
	"clock-ahead":       hiddenSoon,
	"connecting":        everybody,
	"cursor-early":      allTold,
	"deaf":              everybody,
	"doubt":             everybody,
	"gap-unread":        noneMissing,
	"hanging":           everybody,
	"in-flight":         noneMissing,
	"joined-late":       noneMissing,
	"killed":            answersAgree,
	"late-row":          ownWrites,
	"log-ahead":         noneMissing,
	"log-of-new-shard":  copiesAgree,
	"log-unfollowed":    noneMissing,
	"log-unreported":    answersAgree,
	"posts-unread":      answersAgree,
	"read-under-way":    ownWrites,
	"restored-unread":   hiddenSoon,
	"sent-twice":        inOrder,
	"shard-unread":      hiddenSoon,
	"token-of-relation": withToken,
	"tokens-unheard":    tokensEnd,
}

// TestFaultsAreFound puts each fault of testdata back, one by one, and has the simulator find it: by a seed that breaks its property, and
// breaks nothing without the fault.
func TestFaultsAreFound(t *testing.T) {
	testenv.Long(t)
	for fault, property := range foundBy {
		t.Run(fault, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "sim.test")
			build := exec.Command("go", "test", "-c", "-overlay", overlay(t, filepath.Join("testdata", fault+".patch")), "-o", program, ".")
			text, err := build.CombinedOutput()
			must.That(t, err == nil, "%s: %s", err, text)
			began := time.Now()
			for seed := 1; time.Since(began) < patience; seed++ {
				test := exec.Command(program, "-test.run", "^TestGuarantees$")
				test.Env = append(os.Environ(), "KITH_SIM_WHOLE=1", fmt.Sprint("KITH_SIM_SEED=", seed), "KITH_SIM_FOR="+(patience-time.Since(began)).String())
				text, _ := test.CombinedOutput()
				found := regexp.MustCompile(`seed (\d+): ("[^"]+") does not hold.*`).FindSubmatch(text)
				if found == nil {
					break
				}
				t.Logf("in %s: %s", time.Since(began).Round(time.Second/10), found[0])
				seed, _ = strconv.Atoi(string(found[1]))
				if string(found[2]) == strconv.Quote(property) && len(run(t, uint64(seed), schedule(uint64(seed), stepsOf)).failures) == 0 {
					return
				}
			}
			t.Errorf("not found in %s", time.Since(began))
		})
	}
}

// overlay applies a patch to a copy of its file and returns the list that has the go command read the copy.
func overlay(t *testing.T, patch string) (list string) {
	text := must.File(t, patch)
	root, copies := filepath.Join("..", ".."), t.TempDir()
	name := string(regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`).FindSubmatch(text)[1])
	whole := must.File(t, filepath.Join(root, name))
	must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(copies, name)), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(copies, name), whole, 0o600))
	apply := exec.Command("git", "apply", "-")
	apply.Dir, apply.Stdin = copies, strings.NewReader(string(text))
	out, err := apply.CombinedOutput()
	must.That(t, err == nil, "%s: %s", err, out)
	original, _ := filepath.Abs(filepath.Join(root, name))
	replaced, _ := json.Marshal(map[string]any{"Replace": map[string]string{original: filepath.Join(copies, name)}})
	list = filepath.Join(copies, "overlay.json")
	must.OK(t, os.WriteFile(list, replaced, 0o600))
	return list
}
