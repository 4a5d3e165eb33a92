package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// stage is what the last stage of a Dockerfile says.
type stage struct {
	config v1.Config
	copies []*instructions.CopyCommand
}

// lastStage refuses instructions whose effect it would leave out.
func lastStage(dockerfile string) (stage, error) {
	s := stage{config: v1.Config{ExposedPorts: map[string]struct{}{}}}
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return s, err
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return s, err
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return s, err
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		return s, fmt.Errorf("%s: the last stage is based on %s, not on scratch", dockerfile, last.BaseName)
	}
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.CopyCommand:
			s.copies = append(s.copies, c)
		case *instructions.WorkdirCommand:
			s.config.WorkingDir = c.Path
		case *instructions.UserCommand:
			s.config.User = c.User
		case *instructions.EnvCommand:
			for _, pair := range c.Env {
				s.config.Env = append(s.config.Env, pair.String())
			}
		case *instructions.ExposeCommand:
			for _, port := range c.Ports {
				s.config.ExposedPorts[port+"/tcp"] = struct{}{}
			}
		case *instructions.HealthCheckCommand:
			s.config.Healthcheck = &v1.HealthConfig{
				Test: c.Health.Test, Interval: c.Health.Interval, Timeout: c.Health.Timeout, StartPeriod: c.Health.StartPeriod, Retries: c.Health.Retries,
			}
		case *instructions.EntrypointCommand:
			s.config.Entrypoint = c.CmdLine
		case *instructions.CmdCommand:
			s.config.Cmd = c.CmdLine
		default:
			return s, fmt.Errorf("%s: %s is not known here", dockerfile, command)
		}
	}
	return s, nil
}

// labels are those of https://specs.opencontainers.org/image-spec/annotations/.
func (s stage) labels(of release) map[string]string {
	all := map[string]string{
		"title": "kith", "description": "GraphQL gateway to a sharded social graph", "licenses": "Apache-2.0",
		"version": of.Version, "revision": of.Commit, "created": of.Date.Format("2006-01-02T15:04:05Z"),
	}
	if of.Source != "" {
		all["source"], all["url"] = of.Source, of.Source
	}
	labels := make(map[string]string)
	for key, value := range all {
		labels["org.opencontainers.image."+key] = value
	}
	return labels
}

// image has a layer for each COPY.
func (s stage) image(program string, platform v1.Platform, of release) (v1.Image, error) {
	config := s.config
	config.Labels = s.labels(of)
	image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Created: v1.Time{Time: of.Date}, Config: config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	for _, c := range s.copies {
		files, err := layer(c, program, of)
		if err != nil {
			return nil, err
		}
		made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: made, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: of.Date}, CreatedBy: c.String()},
		})
		if err != nil {
			return nil, err
		}
	}
	return image, nil
}

// layer is what a COPY puts into the image: the program, the certificates, or the empty folder for data.
func layer(c *instructions.CopyCommand, program string, of release) ([]byte, error) {
	at := strings.TrimPrefix(c.DestPath, "/")
	h := tar.Header{Name: at, ModTime: of.Date, Mode: 0o644, Typeflag: tar.TypeReg}
	if user, group, ok := strings.Cut(c.Chown, ":"); ok {
		h.Uid, _ = strconv.Atoi(user)
		h.Gid, _ = strconv.Atoi(group)
	}
	var content []byte
	var err error
	switch from := c.SourcePaths[0]; from {
	case "/out/kith":
		h.Mode = 0o755
		content, err = os.ReadFile(program)
	case "/etc/ssl/certs/ca-certificates.crt":
		h.Name += path.Base(from)
		content = certificates()
	case "/out/data":
		h.Mode, h.Typeflag = 0o755, tar.TypeDir
	default:
		err = fmt.Errorf("where does %s come from?", from)
	}
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	for dir := range parents(h.Name) {
		if err := w.WriteHeader(&tar.Header{Name: dir + "/", ModTime: of.Date, Mode: 0o755, Typeflag: tar.TypeDir}); err != nil {
			return nil, err
		}
	}
	h.Size = int64(len(content))
	if err := w.WriteHeader(&h); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close() // it writes the end
	return files.Bytes(), err
}

// parents are the folders in which a file is, from the outermost.
func parents(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i, r := range name {
			if r == '/' && i < len(name)-1 && !yield(name[:i]) {
				return
			}
		}
	}
}

// certificates are those of authorities that are trusted without a condition.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return text.Bytes()
}
