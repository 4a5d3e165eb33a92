package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// client asks over one connection that stays open. It exists because the load shares the machine with the programs that are measured, and
// net/http's client hands each request to two other goroutines and back.
type client struct {
	address  string
	head     []byte // of every request, up to the value of Content-Length
	request  *http.Request
	conn     net.Conn
	in       *bufio.Reader
	out      []byte
	response bytes.Buffer
}

// patience is how long one answer may take.
const patience = 30 * time.Second

func newClient(at *url.URL) (*client, error) {
	if at.Scheme != "http" || at.Host == "" {
		return nil, fmt.Errorf("%s: it must begin with http:// and a host", at)
	}
	address := at.Host
	if at.Port() == "" {
		address = net.JoinHostPort(at.Hostname(), "80")
	}
	head := "POST " + at.RequestURI() + " HTTP/1.1\r\nHost: " + at.Host +
		"\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: "
	return &client{address: address, head: []byte(head), request: &http.Request{Method: http.MethodPost}}, nil
}

// dial connects, if there is no connection yet.
func (c *client) dial(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return err
	}
	c.conn, c.in = conn, bufio.NewReaderSize(conn, 16<<10)
	return nil
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// ask sends one body, with a token if there is one, and returns the status and the
// response, which is valid until the next call. After an error the connection is closed.
func (c *client) ask(body []byte, token string) (int, []byte, error) {
	status, response, err := c.exchange(body, token)
	if err != nil {
		c.close()
	}
	return status, response, err
}

func (c *client) exchange(body []byte, token string) (int, []byte, error) {
	c.out = append(c.out[:0], c.head...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	if token != "" {
		c.out = append(append(c.out, "\r\nAuthorization: Bearer "...), token...)
	}
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, body...)
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, nil, err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, nil, err
	}
	answer, err := http.ReadResponse(c.in, c.request)
	if err != nil {
		return 0, nil, err
	}
	c.response.Reset()
	if _, err := c.response.ReadFrom(answer.Body); err != nil {
		return 0, nil, err
	}
	if answer.Close {
		c.close()
	}
	return answer.StatusCode, c.response.Bytes(), nil
}
