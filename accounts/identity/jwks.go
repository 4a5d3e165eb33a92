package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"kith/storage/sleep"
)

const (
	// maxJWKS is how long a JWKS may be, in bytes.
	maxJWKS = 1 << 20

	// readTimeout bounds one reading of the keys: a program that cannot start says so
	// within 5 s.
	readTimeout = 4 * time.Second

	// retryEvery is how soon keys that could not be read are tried again.
	retryEvery = 30 * time.Second

	// maxWaiting is how many requests with tokens of unknown keys wait for a reading. Nothing else bounds them yet: they have not been admitted.
	maxWaiting = 512

	// demandBurst is how many readings tokens of unknown keys may cause at once.
	demandBurst = 2
)

// jwks keeps the keys of an identity provider at hand. Requests use the keys that were read last,
// however long it takes until newer ones can be read.
type jwks struct {
	read   func(context.Context) ([]byte, error)
	name   string // of the source, for messages
	every  time.Duration
	logger *slog.Logger

	current atomic.Pointer[keySet]
	demand  *rate.Limiter
	waiting atomic.Int32 // requests

	reading singleflight.Group // at most one reading at a time

	lifetime context.Context // of the readings: no request's end may stop one that others wait for
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// openJWKS reads the keys for the first time and then again in the background.
func openJWKS(ctx context.Context, cfg Config, location string) (*jwks, error) {
	j := &jwks{every: cfg.RefreshEvery, logger: cfg.Logger, demand: rate.NewLimiter(rate.Every(cfg.RefreshGap), demandBurst)}
	if u, ok := asURL(location); ok {
		j.name, j.read = u.Host+u.Path, urlReader(cfg.Client, u)
	} else {
		j.name, j.read = location, func(context.Context) ([]byte, error) { return readFile(location, maxJWKS) }
	}
	if err := j.load(ctx); err != nil {
		return nil, err
	}
	j.lifetime, j.stop = context.WithCancel(context.WithoutCancel(ctx))
	j.running.Go(j.keepFresh)
	return j, nil
}

func (j *jwks) close() {
	j.stop()
	<-j.refresh(func() bool { return false }) // waits for the reading under way; later readings end at once
	j.running.Wait()
}

// load reads the keys once. If it fails, the keys at hand stay.
func (j *jwks) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	text, err := j.read(ctx)
	if err != nil {
		return fmt.Errorf("read the keys of %s: %w", j.name, err)
	}
	set, err := parseKeys(text)
	if err != nil {
		return fmt.Errorf("read the keys of %s: %w", j.name, err)
	}
	j.current.Store(&set)
	return nil
}

// find returns the keys that a token may be signed with. An unknown id
// may be that of a new key, so the keys are read again, but at a bounded rate, because anybody
// can make up an id. Beyond [maxWaiting] the keys at hand decide.
func (j *jwks) find(ctx context.Context, kid, method string) []jwt.VerificationKey {
	set := *j.current.Load()
	if kid != "" && !set.has(kid) {
		if j.waiting.Add(1) <= maxWaiting {
			select {
			case <-j.refresh(j.demand.Allow):
			case <-ctx.Done():
			}
		}
		j.waiting.Add(-1)
		set = *j.current.Load()
	}
	return set.find(kid, method)
}

// refresh waits for the reading that is under way, or for one more if that is allowed.
func (j *jwks) refresh(allowed func() bool) <-chan singleflight.Result {
	return j.reading.DoChan("", func() (any, error) {
		if !allowed() {
			return nil, errNotNow
		}
		err := j.load(j.lifetime)
		if err != nil && j.lifetime.Err() == nil {
			j.logger.Warn("cannot read the keys for tokens: keeping the previous ones", "error", err)
		}
		return nil, err
	})
}

// errNotNow: tokens of unknown keys have caused enough readings.
var errNotNow = errors.New("the keys are not read again now")

func (j *jwks) keepFresh() {
	for wait := j.every; sleep.For(j.lifetime, wait) == nil; {
		wait = j.every
		if read := <-j.refresh(func() bool { return true }); read.Err != nil {
			wait = min(j.every, retryEvery)
		}
	}
}

// asURL distinguishes URLs from names of files.
func asURL(location string) (*url.URL, bool) {
	if !strings.HasPrefix(location, "https://") && !strings.HasPrefix(location, "http://") {
		return nil, false
	}
	u, err := url.Parse(location)
	return u, err == nil && u.Host != ""
}

func urlReader(client *http.Client, u *url.URL) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, errors.New("it is no URL")
		}
		request.Header.Set("Accept", "application/jwk-set+json, application/json")
		response, err := client.Do(request)
		if err != nil {
			// The library's error repeats the URL, whose query may be a secret.
			if wrapper, ok := errors.AsType[*url.Error](err); ok {
				err = wrapper.Err
			}
			return nil, err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("it answers %d", response.StatusCode)
		}
		return readBounded(response.Body, maxJWKS)
	}
}

func readBounded(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it is longer than %d bytes", most)
	}
	return text, err
}

// readFile reads a file that may be so long. Files are read repeatedly, and opening a pipe may hang.
func readFile(name string, most int64) ([]byte, error) {
	if err := checkFile(name); err != nil {
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file, most)
}

func checkFile(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	return err
}

// newClient makes a client that follows few redirects, and none that drops TLS.
func newClient() *http.Client {
	return &http.Client{
		Timeout: readTimeout,
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			if len(via) > 3 {
				return errors.New("too many redirects")
			}
			if via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
				return errors.New("a redirect gives TLS up")
			}
			return nil
		},
	}
}
