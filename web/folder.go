package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// folder is a set of files under a URL that names their content, so that a browser may keep them
// permanently and a new build is fetched at once. Files refer to one another by relative URLs, so
// all of them have one version.
type folder struct {
	version string // a hash over every name and content
	prefix  string // such as "/graphiql/", and the version
	files   map[string]file
}

// file is one file as it is embedded: gzipped by the build, or small and plain.
type file struct {
	body        []byte
	plain       func() ([]byte, error) // the body unpacked, once for all clients: some keep it for as long as a request may last; nil: it is not gzipped
	contentType string
}

// contentTypes are set here and not taken from the machine's mime.types, which is missing in small
// images: a browser does not run a module script whose type is text/plain.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// newFolder reads the files at the top of fsys, to be served below root; a name that ends in .gz is served without
// it. Files of other types, and hidden ones, are not served.
func newFolder(fsys fs.FS, root string) (*folder, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	f := &folder{files: map[string]file{}}
	version := sha256.New()
	for _, e := range entries { // sorted by name
		name, gzipped := strings.CutSuffix(e.Name(), ".gz")
		contentType := contentTypes[path.Ext(name)]
		if e.IsDir() || contentType == "" {
			continue
		}
		body, err := fs.ReadFile(fsys, e.Name())
		if err != nil {
			return nil, fmt.Errorf("read assets: %w", err)
		}
		fmt.Fprintf(version, "%s\x00%d\x00", e.Name(), len(body))
		version.Write(body)
		of := file{body: body, contentType: contentType}
		if gzipped {
			of.plain = sync.OnceValues(func() ([]byte, error) { return gunzip(body) })
		}
		f.files[name] = of
	}
	f.version = hex.EncodeToString(version.Sum(nil)[:6])
	f.prefix = root + f.version
	return f, nil
}

// find returns the file a path of this folder and this version names.
func (f *folder) find(urlPath string) (file, bool) {
	name, ok := strings.CutPrefix(urlPath, f.prefix+"/")
	file, found := f.files[name]
	return file, ok && found
}

// serve sends the file as it is stored, or unpacked to a client that does not accept gzip. The URL
// already names the version, so the version is the ETag of every file of a folder.
func (f file) serve(w http.ResponseWriter, r *http.Request, version string) {
	body, etag := f.body, version
	if f.plain != nil {
		w.Header().Set("Vary", "Accept-Encoding")
		if acceptsGzip(r) {
			etag += "-gzip"
			w.Header().Set("Content-Encoding", "gzip")
		} else if plain, err := f.plain(); err == nil {
			body = plain
		} else {
			http.Error(w, "asset is damaged", http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reports whether the client accepts gzip; "gzip;q=0" refuses it. Browsers send some 20 bytes, and to read 64 KiB would take four
// milliseconds.
func acceptsGzip(r *http.Request) bool {
	accept := r.Header.Get("Accept-Encoding")
	for part := range strings.SplitSeq(accept[:min(len(accept), 1<<10)], ",") {
		coding, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err == nil && coding == "gzip" {
			return strings.Trim(params["q"], "0.") != "" || params["q"] == ""
		}
	}
	return false
}

func gunzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
