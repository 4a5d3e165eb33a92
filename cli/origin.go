package cli

import (
	"fmt"
	"net/url"
	"strings"
)

// CheckOrigin refuses a text that no browser sends as an origin, and that would never
// match: an origin is a scheme, a host and perhaps a port. One * stands for any
// text.
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
