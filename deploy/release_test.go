package deploy_test

import (
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// released is the folder in which `make release-check` has made a release, and the version of it.
func released(t *testing.T) (dist, version string) {
	t.Helper()
	dist = os.Getenv("KITH_TEST_RELEASE")
	if dist == "" {
		t.Skip("no release was made: make release-check makes one")
	}
	var about struct{ Version string }
	err := json.Unmarshal([]byte(read(t, filepath.Join(dist, "metadata.json"))), &about)
	must.That(t, err == nil && about.Version != "", "%v %v", about, err)
	return dist, about.Version
}

// shell runs a command and returns its output.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	must.That(t, err == nil, "%s %v: %v\n%s", name, args, err, out)
	return string(out)
}

// runs starts a program as a gateway with the demo graph, in a folder of its own, and asks it.
func runs(t *testing.T, program string, args ...string) *kithtest.Gateway {
	t.Helper()
	args = append(args, "serve", "--demo", "--addr=127.0.0.1:0")
	g := kithtest.Announced(t, kithtest.Launch(t, kithtest.Program(program), kithtest.Dir(t.TempDir()), kithtest.Args(args...)))
	answer, err := g.Ask(`{ user(by: {id: 1}) { name } }`, nil)
	check.That(t, err == nil && strings.Contains(string(answer.Data), "Maya Okafor"), "%s answers %s, %v", program, answer.Data, err)
	return g
}

// builtFor checks what a program was built from, and that it needs nothing beside it.
func builtFor(t *testing.T, program, goos, arch string) {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	must.OK(t, err)
	has := map[string]string{}
	for _, s := range info.Settings {
		has[s.Key] = s.Value
	}
	check.That(t, has["GOOS"] == goos && has["GOARCH"] == arch && has["CGO_ENABLED"] == "0" && has["-trimpath"] == "true", "%s was built with %v", program, has)
	if goos != "linux" {
		return
	}
	file, err := elf.Open(program)
	must.OK(t, err)
	defer file.Close()
	check.That(t, !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), "%s is not static", program)
}

// here reports whether this machine runs programs of a platform.
func here(goos, arch string) bool { return goos == runtime.GOOS && arch == runtime.GOARCH }

// linksLead checks the links of README and of the pages for users in an archive.
func linksLead(t *testing.T, root string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs/*/*.md"))
	must.That(t, err == nil && len(pages) >= 20, "%d pages, %v", len(pages), err)
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "deploy/README.md")) {
		if strings.Contains(page, "/inside/") { // they lead into the source
			continue
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)|src="([^"]+)"`).FindAllStringSubmatch(read(t, page), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), link[1]+link[2]))
			check.Is(t, fmt.Sprintf("%s links to what is not in the archive", page), err, nil)
		}
	}
}

// TestReleaseArchives: they hold the same files, those of their platform, owned by root; this machine's is run.
func TestReleaseArchives(t *testing.T) {
	dist, version := released(t)
	ran := false
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		goos, arch, _ := strings.Cut(platform, "_")
		name := "kith_" + version + "_" + platform
		archive, into := filepath.Join(dist, name+".tar.gz"), t.TempDir()
		list := shell(t, "tar", "-tvzf", archive)
		check.That(t, strings.Count(list, " root/root ") == strings.Count(list, "\n"), "%s: not all is root's:\n%s", name, list)
		shell(t, "tar", "-xzf", archive, "-C", into)
		entries, err := os.ReadDir(filepath.Join(into, name))
		must.OK(t, err)
		var has []string
		for _, e := range entries {
			has = append(has, e.Name())
		}
		want := []string{"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "bench", "deploy", "docs", "examples", "internal", "kith", "kith-bench", "web"}
		check.That(t, slices.Equal(has, want), "%s holds %v", name, has)
		linksLead(t, filepath.Join(into, name))
		for _, program := range []string{"kith", "kith-bench"} {
			builtFor(t, filepath.Join(into, name, program), goos, arch)
		}
		if here(goos, arch) {
			ran = true
			said := shell(t, filepath.Join(into, name, "kith"), "version")
			check.That(t, strings.HasPrefix(said, "kith "+version+" (commit ") && !strings.Contains(said, "unknown"), "it says %s", said)
			g := runs(t, filepath.Join(into, name, "kith"))
			_, page := g.Get(t, "/app")
			check.Has(t, "the app is not in it", page, "<script")
		}
	}
	if !ran {
		t.Logf("no archive is for %s on %s: none was run", runtime.GOOS, runtime.GOARCH)
	}
}

// packaged are files that every package has.
var packaged = []string{
	"/usr/bin/kith", "/etc/kith/kith.env", "/usr/lib/systemd/system/kith.service", "/usr/lib/systemd/system/kith-replicate.service", "/usr/lib/systemd/system/kith-audit.service",
	"/usr/lib/systemd/system/kith-reconcile.service", "/usr/lib/systemd/system/kith-reconcile.timer", "/usr/share/doc/kith/copyright",
	"/usr/share/bash-completion/completions/kith",
}

// TestReleasePackages: dpkg installs the deb of this machine into a folder, keeps changed settings, and removes it. Those of other systems are listed.
func TestReleasePackages(t *testing.T) {
	dist, version := released(t)
	for _, arch := range []string{"amd64", "arm64"} {
		path := func(ext string) string { return filepath.Join(dist, "kith_"+version+"_linux_"+arch+"."+ext) }
		lists := map[string]string{
			"deb": shell(t, "dpkg-deb", "--contents", path("deb")),
			"apk": shell(t, "tar", "--warning=no-unknown-keyword", "-tzf", path("apk")),
		}
		if _, err := exec.LookPath("rpm"); err == nil {
			lists["rpm"] = shell(t, "rpm", "-qpl", path("rpm"))
		} else {
			t.Log("rpm is not installed: the rpm is not listed")
		}
		for kind, list := range lists {
			for _, file := range packaged {
				check.That(t, strings.Contains(list, strings.TrimPrefix(file, "/")), "the %s for %s has no %s:\n%s", kind, arch, file, list)
			}
		}
		if !here("linux", arch) || os.Getuid() != 0 {
			t.Logf("the deb for %s is not installed", arch)
			continue
		}
		installs(t, path("deb"))
	}
}

func installs(t *testing.T, deb string) {
	t.Helper()
	root := t.TempDir()
	for _, folder := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		must.OK(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	must.OK(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	shell(t, "dpkg", "--root="+root, "--install", deb)
	for _, file := range packaged {
		_, err := os.Stat(filepath.Join(root, file))
		check.That(t, err == nil, "%v", err)
	}
	settings := filepath.Join(root, "etc/kith/kith.env")
	info, err := os.Stat(settings)
	check.That(t, err == nil && info.Mode().Perm() == 0o600, "the settings can be read by others: %v, %v", info, err)
	g := runs(t, filepath.Join(root, "usr/bin/kith"))
	g.Interrupt(t)
	must.OK(t, os.WriteFile(settings, []byte("KITH_ADDR=127.0.0.1:8080\n"), 0o600))
	shell(t, "dpkg", "--root="+root, "--force-confdef", "--install", deb)
	shell(t, "dpkg", "--root="+root, "--remove", "kith")
	_, err = os.Stat(filepath.Join(root, "usr/bin/kith"))
	check.That(t, err != nil, "the program stays after the removal")
	text, err := os.ReadFile(settings)
	check.That(t, err == nil && string(text) == "KITH_ADDR=127.0.0.1:8080\n", "an update or the removal has changed the settings: %s, %v", text, err)
}

// TestReleaseImage: the files of the image, and nothing else, are a system that runs as its user, which can write to its volume only.
func TestReleaseImage(t *testing.T) {
	dist, version := released(t)
	root, tool := t.TempDir(), filepath.Join(dist, "../bin/image")
	for _, arch := range []string{"arm64", runtime.GOARCH} {
		shell(t, "bash", "-c", `rm -rf "$1"/* && "$2" -unpack "$3" "$4" | tar -x -C "$1"`, "-", root, tool, "linux/"+arch, dist)
		builtFor(t, filepath.Join(root, "usr/local/bin/kith"), "linux", arch)
	}
	check.Has(t, "what it says", shell(t, filepath.Join(root, "usr/local/bin/kith"), "version"), "kith "+version+" ")
	if os.Getuid() != 0 || exec.Command("unshare", "--mount", "true").Run() != nil {
		t.Log("without the right to mount, the image's program is run, but not in the image")
		runs(t, filepath.Join(root, "usr/local/bin/kith"))
		return
	}
	must.OK(t, os.Chmod(root, 0o755))
	inside := filepath.Join(t.TempDir(), "inside")
	script := fmt.Sprintf("#!/bin/bash\nset -e\ncd '%[1]s'\nexec unshare --mount bash -c 'mount --bind . /mnt && mount -o remount,ro,bind /mnt && mount -t tmpfs -o uid=65532 none /mnt/var/lib/kith/data && "+
		"exec chroot --userspec=65532:65532 --groups= /mnt /usr/local/bin/kith \"$@\"' - \"$@\"\n", root)
	must.OK(t, os.WriteFile(inside, []byte(script), 0o700))
	g := runs(t, inside, "--store=sqlite:/var/lib/kith/data/kith.db")
	health := func() kithtest.End {
		return kithtest.Run(t, kithtest.Program(inside), kithtest.Env("KITH_ADMIN_ADDR="), kithtest.Args("healthcheck", "--addr="+strings.TrimPrefix(g.URL, "http://")))
	}
	end := health()
	check.That(t, end.Code == 0 && end.Stderr == "", "the health check of a gateway: %+v", end)
	g.Interrupt(t)
	end = health()
	check.That(t, end.Code == 1, "the health check of a gateway that has ended: %+v", end)
	end = kithtest.Run(t, kithtest.Program(inside), kithtest.Args("migrate", "--store=sqlite:/var/lib/kith/kith.db"))
	check.That(t, end.Code != 0, "it writes outside of its volume: %+v", end)
}

// TestReleaseDocuments: bills of materials have the modules that the programs are built from, the formula the sums of the archives.
func TestReleaseDocuments(t *testing.T) {
	dist, version := released(t)
	sums := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^([0-9a-f]{64})  (\S+)$`).FindAllStringSubmatch(read(t, filepath.Join(dist, "SHA256SUMS")), -1) {
		sums[line[2]] = line[1]
	}
	check.That(t, len(sums) == 4+6+8+2, "SHA256SUMS has %d files", len(sums)) // archives, packages, bills of materials, the chart and the npm package
	bills := 0
	for name := range sums {
		if !strings.HasSuffix(name, ".cdx.json") {
			continue
		}
		bills++
		text := read(t, filepath.Join(dist, name))
		for _, want := range []string{`"bomFormat": "CycloneDX"`, `"version": "v` + version + `"`, `"name": "github.com/99designs/gqlgen"`, `pkg:golang/modernc.org/sqlite@`, `"type": "SHA-256"`} {
			check.That(t, strings.Contains(strings.ReplaceAll(text, `"alg"`, `"type"`), want), "%s has no %s", name, want)
		}
	}
	check.Equal(t, "bills of materials", bills, 8)
	formula := read(t, filepath.Join(dist, "homebrew/kith.rb"))
	urls := regexp.MustCompile(`url "\S+/([^/"]+)"[^"]*sha256 "([0-9a-f]{64})"`).FindAllStringSubmatch(formula, -1)
	for _, u := range urls {
		check.That(t, sums[u[1]] == u[2], "the formula has another sum for %s", u[1])
	}
	check.That(t, len(urls) == 4 && strings.Contains(formula, "class Kith < Formula"), "the formula:\n%s", formula)
}

// TestReleaseChart: it is deploy/helm, with the version of the release.
func TestReleaseChart(t *testing.T) {
	dist, version := released(t)
	into := t.TempDir()
	packed := filepath.Join(dist, "kith-"+version+".tgz")
	shell(t, "tar", "-xzf", packed, "-C", into)
	chart := filepath.Join(into, "kith")
	out, err := exec.Command("diff", "-r", "-I", `^\(version\|appVersion\): `, "helm", chart).CombinedOutput()
	is := read(t, filepath.Join(chart, "Chart.yaml"))
	check.That(t, err == nil && strings.Contains(is, fmt.Sprintf("version: %s\nappVersion: %[1]s\n", version)), "the chart differs: %v %s\n%s", err, out, is)
	text, err := os.ReadFile(packed)
	if err != nil || !strings.Contains(read(t, filepath.Join(dist, "SHA256SUMS")), fmt.Sprintf("%x  kith-%s.tgz", sha256.Sum256(text), version)) {
		t.Errorf("SHA256SUMS has another chart; %v", err)
	}
}
