package deploy_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/cli"
	"kith/internal/check"
	"kith/internal/must"
)

// interpolated replaces ${NAME…} as compose does; every variable is in env.example.
func interpolated(t *testing.T, text string) string {
	t.Helper()
	example := read(t, "env.example")
	return regexp.MustCompile(`\$\{(\w+)[^}]*\}`).ReplaceAllStringFunc(text, func(found string) string {
		name := regexp.MustCompile(`\w+`).FindString(found)
		check.That(t, strings.Contains(example, "\n"+name+"="), "env.example does not have %s", name)
		return strings.Repeat("x", 32)
	})
}

// kithServices are the services of compose.yaml that run Kith, as they are started.
func kithServices(t *testing.T, compose document) map[string]started {
	t.Helper()
	list := map[string]started{}
	for name, value := range compose.at("services").(map[string]any) {
		service := document(value.(map[string]any))
		if service.at("build") == nil {
			continue
		}
		s := started{where: "compose.yaml, " + name, args: texts(service.at("command")), env: map[string]string{}}
		for variable, v := range service.at("environment").(map[string]any) {
			s.env[variable] = interpolated(t, fmt.Sprint(v))
		}
		list[name] = s
	}
	return list
}

func TestComposeStartsWhatItSays(t *testing.T) {
	compose := documents(t, "compose.yaml")[0]
	services := kithServices(t, compose)
	must.Equal(t, "services run Kith", len(services), 4)
	gateways, replicators, auditors := targets(t, "gateways"), targets(t, "replicators"), targets(t, "auditors")
	var audited, asked []string
	for name, s := range services {
		service := document(compose.at("services", name).(map[string]any))
		p := s.parsed(t)
		if p.Redundancy != "auto" || !strings.Contains(p.Store, ";") || !strings.Contains(p.Store, "tcp(mariadb-1:3306)") || compose.at("services", "redis") == nil {
			t.Errorf("%s: %s on %s", s.where, p.Redundancy, p.Store)
		}
		switch {
		case slices.Equal(s.args, []string{"replicate"}):
			wantTarget(t, replicators, name, p.Replicate.AdminAddr)
			continue
		case len(s.args) > 0: // the auditor
			wantTarget(t, auditors, name, p.Reconcile.Watch.AdminAddr)
			audited = p.Reconcile.Watch.Gateways
			continue
		}
		wantTarget(t, gateways, name, p.Serve.AdminAddr)
		check.That(t, !p.Serve.Replicate, "%s replicates, and so does the replicator", name)
		grace, err := time.ParseDuration(service.at("stop_grace_period").(string))
		stopsInTime(t, s.where, p, grace, err)
		_, port, _ := net.SplitHostPort(p.Serve.Addr)
		for _, published := range texts(service.at("ports")) {
			check.That(t, strings.HasSuffix(published, ":"+port), "%s publishes %s, and listens on %s", name, published, p.Serve.Addr)
		}
		asked = append(asked, "http://"+name+":"+port)
	}
	slices.Sort(asked)
	check.That(t, slices.Equal(asked, audited), "the auditor asks %v, not %v", audited, asked)
}

// stopsInTime checks that a gateway is not killed while it stops.
func stopsInTime(t *testing.T, where string, p *cli.Program, grace time.Duration, err error) {
	t.Helper()
	needed := p.Serve.StopDelay + p.Serve.Drain
	check.That(t, err == nil && grace > needed && p.Serve.StopDelay != 0, "%s: killed after %s, stops within %s; %v", where, grace, needed, err)
}

// targets are the addresses that Prometheus scrapes.
func targets(t *testing.T, file string) (list []string) {
	t.Helper()
	for _, group := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(read(t, "prometheus/targets/"+file+".yaml"), -1) {
		list = append(list, group[1])
	}
	return list
}

func wantTarget(t *testing.T, list []string, name, address string) {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	must.OK(t, err)
	for _, target := range list {
		if target == name+":"+port {
			return
		}
	}
	t.Errorf("%s serves metrics on %s, Prometheus asks %v", name, address, list)
}

// Every file that a service mounts exists.
func TestComposeMountsWhatIsThere(t *testing.T) {
	mounted := 0
	for name, value := range documents(t, "compose.yaml")[0].at("services").(map[string]any) {
		for _, volume := range texts(document(value.(map[string]any)).at("volumes")) {
			if path, _, _ := strings.Cut(volume, ":"); strings.HasPrefix(path, "./") {
				mounted++
				_, err := os.Stat(path)
				check.Is(t, name, err, nil)
			}
		}
	}
	check.That(t, mounted >= 7, "only %d files are mounted", mounted)
}
