package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// released is a folder like goreleaser's, with two programs of one word.
func released(t *testing.T) (dist string) {
	t.Helper()
	dist = filepath.Join(t.TempDir(), "dist")
	var made []artifact
	for _, arch := range []string{"amd64", "arm64"} {
		a := artifact{Name: "kith", Path: "dist/kith_" + arch, Goos: "linux", Goarch: arch, Type: "Binary"}
		a.Extra.ID = "kith"
		made = append(made, a, artifact{Name: "kith-bench", Path: "dist/bench", Goos: "linux", Goarch: arch, Type: "Binary"})
		put(t, filepath.Join(dist, "kith_"+arch), arch)
		if err := os.Chtimes(filepath.Join(dist, "kith_"+arch), time.Time{}, time.Unix(1_700_000_000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dist, "artifacts.json"), string(text))
	put(t, filepath.Join(dist, "metadata.json"), `{"version": "1.2.3", "commit": "abc", "date": "2030-01-01T00:00:00Z"}`)
	return dist
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestImage: what the Dockerfile says is in the image; the same release gives the same bytes; a registry takes it.
func TestImage(t *testing.T) {
	var digests []string
	var dist string
	for range 2 {
		dist = released(t)
		if err := write(dist, "../../../deploy/Dockerfile", "https://example.org/kith"); err != nil {
			t.Fatal(err)
		}
		index, err := layout.ImageIndexFromPath(filepath.Join(dist, "image"))
		if err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("two images differ: %v", digests)
	}

	there := httptest.NewServer(registry.New())
	defer there.Close()
	reference := strings.TrimPrefix(there.URL, "http://") + "/somebody/kith:1.2.3"
	if err := send(filepath.Join(dist, "image"), reference); err != nil {
		t.Fatal(err)
	}
	to, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(to)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 || manifest.Annotations["org.opencontainers.image.version"] != "1.2.3" {
		t.Fatal(manifest, err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		image, err := index.Image(manifest.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		text, err := image.RawConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`"architecture":"` + arch + `"`, `"os":"linux"`, `"User":"65532:65532"`, `"WorkingDir":"/var/lib/kith"`, `"Entrypoint":["/usr/local/bin/kith"]`, `"Cmd":["serve"]`,
			`"Healthcheck":{"Test":["CMD","/usr/local/bin/kith","healthcheck"],"Interval":10000000000,"Timeout":5000000000,"StartPeriod":60000000000}`,
			`"KITH_ADDR=0.0.0.0:8080"`, `"ExposedPorts":{"8080/tcp":{}}`, `"created":"2023-11-14T22:13:20Z"`, `"org.opencontainers.image.source":"https://example.org/kith"`,
			`"org.opencontainers.image.revision":"abc"`, `"org.opencontainers.image.licenses":"Apache-2.0"`,
		} {
			if !bytes.Contains(text, []byte(want)) {
				t.Errorf("%s: no %s in %s", arch, want, text)
			}
		}
		var files bytes.Buffer
		if err := extract(filepath.Join(dist, "image"), "linux/"+arch, &files); err != nil {
			t.Fatal(err)
		}
		list := ""
		for r := tar.NewReader(&files); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			list += fmt.Sprintf("%s %o %d\n", strings.TrimSuffix(h.Name, "/"), h.Mode, h.Uid)
		}
		for _, want := range []string{"usr/local/bin/kith 755 0\n", "etc/ssl/certs/ca-certificates.crt 644 0\n", "var/lib/kith/data 755 65532\n"} {
			if !strings.Contains(list, want) {
				t.Errorf("%s: %q is not in\n%s", arch, want, list)
			}
		}
	}
	if n := bytes.Count(certificates(), []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("only %d certificates", n)
	}
}

// TestImageRefusesWhatItLeavesOut: an instruction that has no place in the image fails.
func TestImageRefusesWhatItLeavesOut(t *testing.T) {
	for _, text := range []string{"FROM scratch\nRUN true\n", "FROM debian\nUSER 1\n", "FROM scratch\nCOPY other /other\n"} {
		file := filepath.Join(t.TempDir(), "Dockerfile")
		put(t, file, text)
		if err := write(released(t), file, ""); err == nil {
			t.Errorf("it takes %q", text)
		}
	}
}
