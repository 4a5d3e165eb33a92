// Image makes the container image of a release without Docker: for each platform, the last stage of deploy/Dockerfile
// around the program that goreleaser has built.
//
//	image -source https://github.com/somebody/kith dist   writes dist/image, an OCI layout of all platforms
//	image -push registry.example.org/kith:0.1.0 dist      sends what is in dist/image to a registry
//	image -unpack linux/amd64 dist >image.tar             writes the files of one platform's image
//
// The same release gives the same bytes. The certificates are Mozilla's, of the module golang.org/x/crypto/x509roots.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	source := flag.String("source", "", "URL of the repository")
	push := flag.String("push", "", "registry, repository and tag to send the image to")
	unpack := flag.String("unpack", "", "platform whose files are written to the standard output as tar")
	dockerfile := flag.String("dockerfile", "deploy/Dockerfile", "its last stage is what the image is made by")
	flag.Parse()
	err := errors.New("usage: image [-source URL | -push REFERENCE | -unpack OS/ARCH] DIST")
	switch dist := flag.Arg(0); {
	case flag.NArg() != 1:
	case *push != "":
		err = send(filepath.Join(dist, "image"), *push)
	case *unpack != "":
		err = extract(filepath.Join(dist, "image"), *unpack, os.Stdout)
	default:
		err = write(dist, *dockerfile, *source)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// release is what goreleaser says of a release in metadata.json.
type release struct {
	Version, Commit string
	Source          string    `json:"-"`
	Date            time.Time `json:"-"` // of the commit, as the programs have it
}

// artifact is a file that goreleaser has made, as in artifacts.json.
type artifact struct {
	Name, Path, Goos, Goarch, Type string
	Extra                          struct{ ID string }
}

// write makes dist/image of the programs in dist.
func write(dist, dockerfile, source string) error {
	var of release
	var made []artifact
	if err := errors.Join(decode(filepath.Join(dist, "metadata.json"), &of), decode(filepath.Join(dist, "artifacts.json"), &made)); err != nil {
		return err
	}
	slices.SortFunc(made, func(a, b artifact) int { return strings.Compare(a.Path, b.Path) }) // goreleaser lists them as they are ready
	of.Source = source
	s, err := lastStage(dockerfile)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	n := 0
	for _, a := range made {
		if a.Type != "Binary" || a.Goos != "linux" || a.Extra.ID != "kith" {
			continue
		}
		n++
		program := filepath.Join(dist, "..", a.Path)
		info, err := os.Stat(program)
		if err != nil {
			return err
		}
		of.Date = info.ModTime().UTC()
		platform := v1.Platform{OS: a.Goos, Architecture: a.Goarch}
		image, err := s.image(program, platform, of)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	if n != 2 {
		return fmt.Errorf("%s has %d programs for linux, not 2", dist, n)
	}
	into := filepath.Join(dist, "image")
	if err := os.RemoveAll(into); err != nil {
		return err
	}
	_, err = layout.Write(into, mutate.Annotations(index, s.labels(of)).(v1.ImageIndex))
	return err
}

func decode(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// send pushes the image of all platforms, as whoever is logged in for the registry.
func send(folder, reference string) error {
	to, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(to, index, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return err
	}
	digest, err := index.Digest()
	fmt.Println(digest)
	return err
}

// extract writes the files of the image for a platform.
func extract(folder, platform string, out io.Writer) error {
	wanted, err := v1.ParsePlatform(platform)
	if err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return err
	}
	images, err := partial.FindImages(index, match.Platforms(*wanted))
	if err != nil || len(images) != 1 {
		return errors.Join(err, fmt.Errorf("%s has %d images for %s", folder, len(images), platform))
	}
	files := mutate.Extract(images[0])
	defer files.Close()
	_, err = io.Copy(out, files)
	return err
}
