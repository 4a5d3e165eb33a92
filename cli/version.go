package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"kith/storage/metrics"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// version and revision come from the linker: the Makefile sets them from git, .goreleaser.yml
// from the release (-ldflags "-X kith/cli.version=… -X kith/cli.revision=…").
var version, revision string

// Build is what a binary was built from.
type Build struct {
	Version   string // "0.1.0" for a release, "0.1.0-3-g64b1791" after it; "devel" if it is not known
	Revision  string // a commit, with "-dirty" after it if files had changed; "unknown" if it is not known
	GoVersion string // "go1.26.8"
	Platform  string // "linux/amd64"
}

// ThisBuild is what this program was built from. Values that were not given to the linker are taken
// from what the go command has recorded.
func ThisBuild() Build {
	info, _ := debug.ReadBuildInfo() // nil without module support
	return buildOf(info, version, revision)
}

func buildOf(info *debug.BuildInfo, version, revision string) Build {
	recorded := Build{}
	if info != nil {
		if info.Main.Version != "(devel)" {
			recorded.Version = strings.TrimPrefix(info.Main.Version, "v") // of go install PATH@v1.2.3
		}
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		recorded.Revision = settings["vcs.revision"]
		if recorded.Revision != "" && settings["vcs.modified"] == "true" {
			recorded.Revision += "-dirty"
		}
	}
	return Build{
		Version:   cmp.Or(version, recorded.Version, "devel"),
		Revision:  cmp.Or(revision, recorded.Revision, "unknown"),
		GoVersion: runtime.Version(),
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// String is the line that `kith version` prints.
func (b Build) String() string {
	return fmt.Sprintf("kith %s (commit %s, %s, %s)", b.Version, b.Revision, b.GoVersion, b.Platform)
}

// VersionCmd is `kith version`.
type VersionCmd struct{}

// BeforeReset prints the version and ends the program before any setting is read.
func (VersionCmd) BeforeReset(app *kong.Kong, given *kong.Context) error {
	return showInstead(app, given, ThisBuild().String()+"\n", nil)
}

// versionFlag is `kith --version`.
type versionFlag bool

// BeforeReset is that of [VersionCmd].
func (versionFlag) BeforeReset(app *kong.Kong, given *kong.Context) error {
	return VersionCmd{}.BeforeReset(app, given)
}

// newRegistry makes a registry with what every process reports about itself: Go's metrics, the
// operating system's, and which build it is.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	NewMetrics(registry)
	return registry
}

// NewMetrics registers kith_build_info, whose value is always 1: the information is in its labels.
func NewMetrics(registerer prometheus.Registerer) {
	this := ThisBuild()
	metrics.In(registerer).Gauges("kith_build_info", "1; the labels say what this program was built from.", "version", "revision", "goversion").
		WithLabelValues(this.Version, this.Revision, this.GoVersion).Set(1)
}
