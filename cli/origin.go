package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// CheckOrigin refuses a text that no browser sends as an origin, because it would never match: an
// origin is a scheme, a host and perhaps a port. One * stands for any text.
func CheckOrigin(origin string) error {
	if origin == "*" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || origin != u.Scheme+"://"+u.Host ||
		u.Hostname() == "" || strings.Count(origin, "*") > 1 || strings.ToLower(origin) != origin {
		return fmt.Errorf("%q is no origin such as https://app.example.org or http://localhost:3000", origin)
	}
	return nil
}

func checkOrigins(origins []string) (err error) {
	for _, origin := range origins {
		err = cmp.Or(err, CheckOrigin(origin))
	}
	return err
}

func checkOneOrigin(origin string) error {
	err := CheckOrigin(origin)
	if err == nil && strings.Contains(origin, "*") {
		err = errors.New("it names one origin, without *")
	}
	return err
}

// Bounds on the headers of --cors-header: each answer to a preflight is looked up among them.
const (
	maxHeaders    = 50
	maxHeaderName = 64
)

var (
	// headerName is a name of a header after RFC 9110. * is a valid name, too; it is excluded, because it
	// would be taken for all headers.
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'+.^_`|~-]+$")

	// headerOfBrowser matches headers that browsers do not let pages set, after
	// https://fetch.spec.whatwg.org/#forbidden-request-header.
	headerOfBrowser = regexp.MustCompile(`(?i)^(accept-charset|accept-encoding|access-control-.*|connection|content-length|cookie2?|date|dnt|expect|host|` +
		`keep-alive|origin|proxy-.*|referer|sec-.*|set-cookie|te|trailer|transfer-encoding|upgrade|via)$`)
)

// checkHeaders refuses names of headers that no page can send.
func checkHeaders(names []string) error {
	if len(names) > maxHeaders {
		return fmt.Errorf("at most %d headers can be named", maxHeaders)
	}
	for _, name := range names {
		switch {
		case len(name) > maxHeaderName:
			return fmt.Errorf("the name of a header has at most %d bytes", maxHeaderName)
		case !headerName.MatchString(name):
			return fmt.Errorf("%q is no name of a header such as X-Tenant", name)
		case headerOfBrowser.MatchString(name):
			return fmt.Errorf("browsers let no page send %q", name)
		}
	}
	return nil
}
