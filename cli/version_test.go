package cli

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// TestBuildOf: values from the linker take precedence over what the go command has recorded.
func TestBuildOf(t *testing.T) {
	recorded := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "64b1791c"}
	for name, c := range map[string]struct {
		info              *debug.BuildInfo
		version, revision string
		want              Build
	}{
		"nothing":              {nil, "", "", Build{Version: "devel", Revision: "unknown"}},
		"without git":          {recorded("(devel)"), "", "", Build{Version: "devel", Revision: "unknown"}},
		"recorded":             {recorded("v0.1.0", commit), "", "", Build{Version: "0.1.0", Revision: "64b1791c"}},
		"recorded, clean":      {recorded("v0.1.0", commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), "", "", Build{Version: "0.1.0", Revision: "64b1791c"}},
		"recorded, changed":    {recorded("v0.1.0", commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "", "", Build{Version: "0.1.0", Revision: "64b1791c-dirty"}},
		"linked":               {recorded("v0.1.0", commit), "0.2.0", "c5c9f5ae", Build{Version: "0.2.0", Revision: "c5c9f5ae"}},
		"linked with a commit": {recorded("(devel)"), "", "c5c9f5ae", Build{Version: "devel", Revision: "c5c9f5ae"}},
	} {
		c.want.GoVersion, c.want.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
		check.Equal(t, name, buildOf(c.info, c.version, c.revision), c.want)
	}
}

func TestBuildLine(t *testing.T) {
	build := Build{Version: "0.1.0", Revision: "64b1791c", GoVersion: "go1.26.8", Platform: "linux/amd64"}
	check.Equal(t, "the build", build.String(), "kith 0.1.0 (commit 64b1791c, go1.26.8, linux/amd64)")
}

// TestRegistryReportsTheBuild: every process that serves /metrics uses this registry.
func TestRegistryReportsTheBuild(t *testing.T) {
	families, err := newRegistry().Gather()
	must.OK(t, err)
	wanted := regexp.MustCompile(`^(go_info|process_start_time_seconds|kith_build_info)$`)
	found := 0
	for _, family := range families {
		if wanted.MatchString(family.GetName()) {
			found++
		}
	}
	check.Equal(t, fmt.Sprint("metrics of ", families), found, 3)
}
