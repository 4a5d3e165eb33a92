// Manifests reads the files of deploy/ as the programs do for which they are written: the Dockerfile by
// BuildKit's parser, compose.yaml by Compose's loader and its schema, the Helm chart by Helm's linter, the Kubernetes manifests
// and what the chart makes into the types of their API, strictly. It prints what these refuse.
//
// It is a module of its own, so that the gateway's module has none of their dependencies.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	writes := flag.Bool("write", false, "write what the chart makes into FOLDER/kubernetes")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: manifests [-write] FOLDER")
		os.Exit(2)
	}
	folder := flag.Arg(0)
	err := errors.Join(dockerfile(filepath.Join(folder, "Dockerfile")), compose(folder), helm(folder, *writes), kubernetes(folder))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// dockerfile also takes BuildKit's warnings for errors.
func dockerfile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var found error
	warn := linter.New(&linter.Config{Warn: func(rule, _, _, message string, at []parser.Range) {
		found = errors.Join(found, fmt.Errorf("%s: %v: %s: %s", path, at, rule, message))
	}})
	stages, _, err := instructions.Parse(parsed.AST, warn)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(stages) != 3 {
		found = errors.Join(found, fmt.Errorf("%s: %d stages", path, len(stages)))
	}
	return found
}

// compose is loaded with a value for each variable of env.example.
func compose(folder string) error {
	options, err := cli.NewProjectOptions([]string{filepath.Join(folder, "compose.yaml")},
		cli.WithEnv([]string{"MARIADB_ROOT_PASSWORD=x", "MARIADB_PASSWORD=x", "KITH_JWT_SECRET=x", "GRAFANA_PASSWORD=x"}))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return fmt.Errorf("compose.yaml: %w", err)
	}
	if len(project.Services) != 9 {
		return fmt.Errorf("compose.yaml: %d services", len(project.Services))
	}
	return nil
}

// kinds are what the manifests may hold, by API and kind.
var kinds = map[string]func() any{
	"v1 Namespace":                            func() any { return new(corev1.Namespace) },
	"v1 ConfigMap":                            func() any { return new(corev1.ConfigMap) },
	"v1 Secret":                               func() any { return new(corev1.Secret) },
	"v1 Service":                              func() any { return new(corev1.Service) },
	"apps/v1 Deployment":                      func() any { return new(appsv1.Deployment) },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policyv1.PodDisruptionBudget) },
	"batch/v1 CronJob":                        func() any { return new(batchv1.CronJob) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networkingv1.NetworkPolicy) },
	"networking.k8s.io/v1 Ingress":            func() any { return new(networkingv1.Ingress) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(monitoringv1.ServiceMonitor) },
}

func kubernetes(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "kubernetes", "*.yaml"))
	if err != nil {
		return err
	}
	read := 0
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue // its type is in a module of kubectl's
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		n, err := objects(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		read += n
	}
	if read < 10 {
		return fmt.Errorf("only %d objects in %s", read, folder)
	}
	return nil
}

// objects decodes what a file holds; no field may be unknown or there twice.
func objects(file io.Reader) (n int, err error) {
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(file))
	defer documents.Close()
	text := make([]byte, 1<<20)
	for ; ; n++ {
		size, err := documents.Read(text)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(text[:size], &kind); err != nil {
			return n, err
		}
		into := kinds[kind.APIVersion+" "+kind.Kind]
		if into == nil {
			return n, fmt.Errorf("there is no %s of %s", kind.Kind, kind.APIVersion)
		}
		if err := yaml.UnmarshalStrict(text[:size], into()); err != nil {
			return n, fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
}
