package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// systemd finds the program in /usr/local/bin, where an archive is unpacked to, or /usr/bin, where packages put it.
const installed = "kith"

// unitEnv is kith.env as systemd reads it.
func unitEnv(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(read(t, "systemd/kith.env"), -1) {
		env[line[1]] = line[2]
	}
	return env
}

func TestUnitsStartWhatTheySay(t *testing.T) {
	units, err := filepath.Glob("systemd/*.service")
	must.That(t, err == nil && len(units) == 5, "%v, %v", units, err)
	for _, unit := range units {
		text := read(t, unit)
		if filepath.Base(unit) == "kith-binlogs.service" {
			continue // it starts MariaDB's programs: internal/faults runs it
		}
		command := regexp.MustCompile(`(?m)^ExecStart=` + installed + ` (.*)$`).FindStringSubmatch(text)
		if command == nil || !strings.Contains(text, "\nEnvironmentFile=/etc/kith/kith.env\n") {
			t.Errorf("%s starts nothing by the settings", unit)
			continue
		}
		p := started{unit, strings.Fields(command[1]), unitEnv(t)}.parsed(t)
		if limit := regexp.MustCompile(`(?m)^TimeoutStopSec=(\w+)$`).FindStringSubmatch(text); limit != nil {
			grace, err := time.ParseDuration(limit[1])
			stopsInTime(t, unit, p, grace, err)
		}
	}
}

// Services that restart do not repeat a start that ends by its settings, and each has an address of its own for operators,
// which is none of those that Prometheus' exporters have (9090 to 9999; node_exporter's is 9100).
func TestUnitsGiveUpAndDoNotCollide(t *testing.T) {
	ports := map[string]string{}
	for _, unit := range []string{"kith", "kith-replicate", "kith-audit", "kith-reconcile"} {
		text := read(t, "systemd/"+unit+".service")
		command := strings.Fields(regexp.MustCompile(`(?m)^ExecStart=` + installed + ` (.*)$`).FindStringSubmatch(text)[1])
		end := kithtest.Run(t, kithtest.Args(append(command, "--admin-addr=none")...))
		if want := fmt.Sprintf("\nRestartPreventExitStatus=%d\n", end.Code); end.Code < 2 || !strings.Contains(text, want) || !strings.Contains(text, "\nRestart=on-failure\n") {
			t.Errorf("%s is started again after code %d: %s", unit, end.Code, end.Stderr)
		}
		if unit == "kith-reconcile" { // nobody asks it
			continue
		}
		admin := regexp.MustCompile(`(?m)^Environment=KITH_ADMIN_ADDR=127\.0\.0\.1:(\d+)$`).FindStringSubmatch(text)
		if admin == nil || ports[admin[1]] != "" || admin[1] >= "9090" && admin[1] <= "9999" || strings.HasSuffix(unitEnv(t)["KITH_ADDR"], ":"+admin[1]) {
			t.Fatalf("%s: %v", unit, admin)
		}
		ports[admin[1]] = unit
	}
}

// systemd knows every word of the units, and finds the programs that they start.
func TestUnitsAreKnownToSystemd(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed") // few containers have it, and none needs it
	}
	folder := t.TempDir()
	var paths []string
	units, err := filepath.Glob("systemd/kith*.[st]*r*")
	must.That(t, err == nil && len(units) == 6, "%v, %v", units, err)
	for _, unit := range units {
		path := filepath.Join(folder, filepath.Base(unit))
		must.OK(t, os.WriteFile(path, []byte(strings.ReplaceAll(read(t, unit), "ExecStart="+installed+" ", "ExecStart="+kithtest.Binary(t)+" ")), 0o600))
		paths = append(paths, path)
	}
	out, err := exec.Command("systemd-analyze", append([]string{"verify", "--man=no"}, paths...)...).CombinedOutput()
	check.That(t, err == nil && !strings.Contains(string(out), folder) && !strings.Contains(string(out), "kith"), "%v: %s", err, out)
}
