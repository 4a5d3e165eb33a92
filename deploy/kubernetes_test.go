package deploy_test

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/accounts/identity"
	"kith/internal/check"
	"kith/internal/must"
)

// manifests are all objects of the manifests, by kind and name.
func manifests(t *testing.T) map[string]document {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	must.That(t, err == nil && len(files) > 0, "%v, %v", files, err)
	listed := texts(documents(t, "kubernetes/kustomization.yaml")[0].at("resources"))
	all := map[string]document{}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		check.That(t, slices.Contains(listed, filepath.Base(file)), "kustomization.yaml does not list %s", file)
		for _, d := range documents(t, file) {
			all[fmt.Sprintf("%s %s", d.at("kind"), d.at("metadata", "name"))] = d
		}
	}
	return all
}

// pod is the template of a Deployment's or a CronJob's pods.
func pod(d document) document {
	if d.at("kind") == "CronJob" {
		return document(d.at("spec", "jobTemplate", "spec", "template").(map[string]any))
	}
	return document(d.at("spec", "template").(map[string]any))
}

// container is the pod's only container.
func container(d document) document {
	return document(pod(d).at("spec", "containers").([]any)[0].(map[string]any))
}

// inPod is Kith as a pod starts it: the shared settings, then its own.
func inPod(all map[string]document, name string) started {
	s := started{where: name, args: texts(container(all[name]).at("args")), env: map[string]string{}}
	for _, shared := range []any{all["ConfigMap kith"].at("data"), all["Secret kith"].at("stringData")} {
		for variable, value := range shared.(map[string]any) {
			s.env[variable] = value.(string)
		}
	}
	own, _ := container(all[name]).at("env").([]any)
	for _, v := range own {
		variable := document(v.(map[string]any))
		s.env[variable.at("name").(string)] = variable.at("value").(string)
	}
	return s
}

func TestManifestsStartWhatTheySay(t *testing.T) {
	all := manifests(t)
	for name, d := range all {
		switch d.at("kind") {
		case "Deployment", "CronJob":
			template := pod(d)
			if template.at("spec", "securityContext", "runAsNonRoot") != true || container(d).at("securityContext", "readOnlyRootFilesystem") != true {
				t.Errorf("%s may do more than it needs", name)
			}
			inPod(all, name).parsed(t)
		case "PodDisruptionBudget":
			of := all["Deployment "+d.at("metadata", "name").(string)]
			check.That(t, fmt.Sprint(d.at("spec", "selector", "matchLabels")) == fmt.Sprint(pod(of).at("metadata", "labels")), "%s selects none of its pods", name)
		}
	}
	gateway, replicator := all["Deployment kith-gateway"], all["Deployment kith-replicator"]
	p := inPod(all, "Deployment kith-gateway").parsed(t)
	grace := fmt.Sprintf("%vs", pod(gateway).at("spec", "terminationGracePeriodSeconds"))
	d, err := time.ParseDuration(grace)
	stopsInTime(t, "gateway.yaml", p, d, err)
	portsAgree(t, gateway, p.Serve.AdminAddr, p.Serve.Addr)
	portsAgree(t, replicator, inPod(all, "Deployment kith-replicator").parsed(t).Replicate.AdminAddr)
	auditor := inPod(all, "Deployment kith-auditor").parsed(t).Reconcile.Watch
	portsAgree(t, all["Deployment kith-auditor"], auditor.AdminAddr)
	each := all["Service kith-gateways"]
	if _, port, _ := net.SplitHostPort(p.Serve.Addr); !slices.Equal(auditor.Gateways, []string{"http://kith-gateways:" + port}) || each.at("spec", "clusterIP") != "None" ||
		fmt.Sprint(each.at("spec", "selector")) != fmt.Sprint(pod(gateway).at("metadata", "labels")) {
		t.Errorf("the auditor asks %v, which is %v", auditor.Gateways, each)
	}
	if got := all["HorizontalPodAutoscaler kith-gateway"].at("spec", "scaleTargetRef", "name"); got != gateway.at("metadata", "name") || gateway.at("spec", "replicas") != nil {
		t.Errorf("the autoscaler scales %v, which has %v replicas of its own", got, gateway.at("spec", "replicas"))
	}
	check.That(t, !p.Serve.Replicate, "gateways replicate, and so does the replicator")
}

// portsAgree compares the ports of a pod with the addresses on which the program listens, and with those
// that are asked: Prometheus asks the operators' address, probes ask either.
func portsAgree(t *testing.T, d document, admin string, others ...string) {
	t.Helper()
	c := container(d)
	named := map[any]string{}
	for _, port := range c.at("ports").([]any) {
		named[document(port.(map[string]any)).at("name")] = fmt.Sprint(document(port.(map[string]any)).at("containerPort"))
	}
	var listens []string
	for _, address := range append(others, admin) {
		_, port, err := net.SplitHostPort(address)
		must.OK(t, err)
		listens = append(listens, port)
		isReached(t, address)
	}
	scraped := pod(d).at("metadata", "annotations", "prometheus.io/port")
	if has := slices.Sorted(maps.Values(named)); !slices.Equal(has, slices.Sorted(slices.Values(listens))) || scraped != listens[len(others)] {
		t.Errorf("%v: listens on %s, has the ports %s and the annotations %v", d.at("metadata", "name"), listens, has, pod(d).at("metadata", "annotations"))
	}
	for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
		if c.at(probe) == nil && probe == "startupProbe" {
			continue
		}
		asked := named[c.at(probe, "httpGet", "port")]
		if path := c.at(probe, "httpGet", "path"); asked == "" || path != "/healthz" && (path != "/readyz" || asked != scraped) {
			t.Errorf("%v: %s asks %v", d.at("metadata", "name"), probe, c.at(probe, "httpGet"))
		}
	}
}

// isReached looks whether a process that listens on an address is reached by IPv6 as well as by IPv4: a cluster may have only one of them.
func isReached(t *testing.T, address string) {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	must.OK(t, err)
	listener, err := net.Listen("tcp", host+":0")
	must.OK(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	must.OK(t, err)
	for _, by := range []string{"127.0.0.1", "::1"} {
		own, err := net.Listen("tcp", net.JoinHostPort(by, "0"))
		if err != nil {
			continue // this machine has no such address
		}
		own.Close()
		conn, err := net.Dial("tcp", net.JoinHostPort(by, port))
		if err != nil {
			t.Errorf("%s is not reached at %s: %v", address, by, err)
			continue
		}
		conn.Close()
	}
}

// No manifest leaves the version open; the chart and kustomization.yaml name the same.
func TestManifestsNameTheirImage(t *testing.T) {
	version := documents(t, "helm/Chart.yaml")[0].at("appVersion")
	kustomized := document(documents(t, "kubernetes/kustomization.yaml")[0].at("images").([]any)[0].(map[string]any))
	check.That(t, kustomized.at("newTag") == version, "kustomization.yaml has %v, the chart %v", kustomized.at("newTag"), version)
	for name, d := range manifests(t) {
		if kind := d.at("kind"); kind == "Deployment" || kind == "CronJob" {
			check.Equal[any](t, name, container(d).at("image"), fmt.Sprintf("%s:%s", kustomized.at("name"), version))
		}
	}
}

// A gateway behind the chart's ingress believes its proxy: otherwise all clients are one address to the limits.
func TestTheChartTrustsItsIngress(t *testing.T) {
	values := documents(t, "helm/values.yaml")[0]
	proxies, err := identity.ParseProxies(strings.Split(fmt.Sprint(values.at("ingress", "proxies")), ","))
	template, failed := os.ReadFile("helm/templates/gateway.yaml")
	const given = `{{- if .Values.ingress.enabled }}
            - {name: KITH_TRUSTED_PROXY, value: {{ .Values.settings.KITH_TRUSTED_PROXY | default .Values.ingress.proxies | quote }}}`
	check.That(t, err == nil && len(proxies) > 0 && failed == nil && strings.Contains(string(template), given), "%v, %v, %v", proxies, err, failed)
}

// Every policy is about pods that are there, and lets nobody but operators to their pages.
func TestPoliciesKeepPagesOfOperators(t *testing.T) {
	all := manifests(t)
	closed := map[string]bool{}
	for _, d := range all {
		if d.at("kind") != "NetworkPolicy" {
			continue
		}
		app := d.at("spec", "podSelector", "matchLabels", "app").(string)
		closed[app] = true
		rules, _ := d.at("spec", "ingress").([]any)
		for _, rule := range rules {
			port := document(document(rule.(map[string]any)).at("ports").([]any)[0].(map[string]any)).at("port")
			check.Equal(t, fmt.Sprintf("%s: the port %v is open", app, port), document(rule.(map[string]any)).at("from") == nil, port == "http")
		}
	}
	for name, d := range all {
		if kind := d.at("kind"); kind == "Deployment" || kind == "CronJob" {
			check.That(t, closed[pod(d).at("metadata", "labels", "app").(string)], "%s has no policy", name)
		}
	}
}

// The pods' user is that of the image.
func TestManifestsRunAsTheImagesUser(t *testing.T) {
	user := must.File(t, "Dockerfile")
	for name, d := range manifests(t) {
		if d.at("kind") != "Deployment" && d.at("kind") != "CronJob" {
			continue
		}
		want := fmt.Sprintf("USER %v:%v\n", pod(d).at("spec", "securityContext", "runAsUser"), pod(d).at("spec", "securityContext", "runAsGroup"))
		check.That(t, slices.Contains(lines(string(user)), want), "%s: the Dockerfile has no %s", name, want)
	}
}
