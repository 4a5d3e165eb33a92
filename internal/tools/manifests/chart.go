package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// everything turns on what is off by default.
var everything = map[string]any{
	"image":          map[string]any{"tag": "9.9.9"},
	"networkPolicy":  map[string]any{"clients": []any{map[string]any{"podSelector": map[string]any{}}}},
	"ingress":        map[string]any{"enabled": true, "className": "nginx", "annotations": map[string]any{"a": "b"}, "tlsSecret": "certificate"},
	"serviceMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
}

// kubernetesVersion is the oldest that the manifests are checked for.
var kubernetesVersion = chartutil.KubeVersion{Version: "v1.30.0", Major: "1", Minor: "30"}

// made begins each file of deploy/kubernetes that the chart makes.
const made = "# Made of deploy/helm with its default values: (cd internal/tools/manifests && go run . -write ../../../deploy) writes it.\n"

// helm lints the chart, decodes all that it makes, and compares deploy/kubernetes with what it makes by default, or writes it.
func helm(deploy string, writes bool) error {
	from := filepath.Join(deploy, "helm")
	var found error
	for _, m := range lint.AllWithKubeVersion(from, everything, "kith", &kubernetesVersion).Messages {
		if m.Severity >= support.WarningSev {
			found = errors.Join(found, fmt.Errorf("helm lint: %w", m))
		}
	}
	if found != nil {
		return found
	}
	c, err := loader.Load(from)
	if err != nil {
		return err
	}
	all, err := render(c, everything)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n, err := objects(strings.NewReader(all[name]))
		if err != nil || n == 0 {
			found = errors.Join(found, fmt.Errorf("%s: %d objects: %w", name, n, err))
		}
		if strings.Contains(all[name], "latest") || strings.Contains(all[name], "image:") && !strings.Contains(all[name], ":9.9.9\"\n") {
			found = errors.Join(found, fmt.Errorf("%s does not say which image", name))
		}
	}
	plain, err := render(c, nil)
	if err != nil {
		return errors.Join(found, err)
	}
	const proxy = "{name: KITH_TRUSTED_PROXY, value: \"10.0.0.0/8," // the limits count clients by address
	if !strings.Contains(all["gateway.yaml"], proxy) || strings.Contains(plain["gateway.yaml"], "KITH_TRUSTED_PROXY") {
		found = errors.Join(found, errors.New("gateways believe the proxy of an ingress exactly if there is one"))
	}
	changed, err := render(c, map[string]any{"settings": map[string]any{"KITH_LOG_LEVEL": "debug"}})
	if err != nil {
		return errors.Join(found, err)
	}
	for _, name := range []string{"gateway.yaml", "replicator.yaml", "auditor.yaml"} {
		if changed[name] == plain[name] {
			found = errors.Join(found, fmt.Errorf("%s: pods go on with the settings from before when a release changes them", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(plain)) {
		file := filepath.Join(deploy, "kubernetes", name)
		if writes {
			found = errors.Join(found, os.WriteFile(file, []byte(made+plain[name]), 0o644))
		} else if text, err := os.ReadFile(file); err != nil || string(text) != made+plain[name] {
			found = errors.Join(found, fmt.Errorf("%s is not what the chart makes: see its first line; %w", file, err))
		}
	}
	return found
}

// render returns the files that a release of the chart called kith has, by name.
func render(c *chart.Chart, with map[string]any) (map[string]string, error) {
	capabilities := *chartutil.DefaultCapabilities
	capabilities.KubeVersion = kubernetesVersion
	values, err := chartutil.ToRenderValues(c, with, chartutil.ReleaseOptions{Name: "kith", Namespace: "kith", IsInstall: true}, &capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, values)
	if err != nil {
		return nil, err
	}
	rendered := make(map[string]string)
	for name, text := range files {
		if text = strings.TrimSpace(text); text != "" {
			rendered[path.Base(name)] = text + "\n"
		}
	}
	return rendered, nil
}
