package replica_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"kith/internal/binlogtest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/replication/binlog/replica"
)

// packet frames what a server sends.
func packet(number byte, parts ...[]byte) []byte {
	payload := slices.Concat(parts...)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))|uint32(number)<<24), payload...)
}

var (
	fine     = []byte{0, 0, 0, 2, 0, 0, 0}
	greeting = slices.Concat([]byte("\x0a8.0.1\x00\x01\x00\x00\x00saltsalt\x00\xff\xf7\x2d\x02\x00\xff\xdf\x15"), make([]byte, 10), []byte("saltsaltsalt\x00caching_sha2_password\x00"))
)

// with is the greeting of a server with another plugin.
func with(plugin string) []byte {
	return bytes.Replace(greeting, []byte("caching_sha2_password"), []byte(plugin), 1)
}

// served is what a client has sent to a server that sends prepared answers, whatever it is asked: a new one each time that something has come.
func served(t *testing.T, cfg *mysql.Config, answers ...[]byte) (c *replica.Conn, sent *bytes.Buffer, err error) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	sent = &bytes.Buffer{}
	done := make(chan struct{})
	t.Cleanup(func() { here.Close(); <-done })
	go func() {
		defer close(done)
		defer there.Close()
		buffer := make([]byte, 1<<16)
		for i, answer := range answers {
			if _, err := there.Write(answer); err != nil {
				return
			}
			if i == len(answers)-1 {
				return
			}
			n, err := there.Read(buffer)
			if sent.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	_ = here.SetDeadline(time.Now().Add(time.Minute))
	if cfg == nil {
		cfg = &mysql.Config{User: "kith", Passwd: "secret-password"}
	}
	c, err = replica.Open(t.Context(), here, cfg)
	if err != nil {
		here.Close()
		<-done // so that sent may be read
	}
	return c, sent, err
}

// A server that sends nonsense instead of a greeting, or asks for more than a client should give, gets an error and no password.
func TestBrokenSignIn(t *testing.T) {
	switchTo := func(number byte, plugin string) []byte {
		return packet(number, []byte{0xfe}, []byte(plugin), []byte("\x00saltsaltsaltsaltsalt\x00"))
	}
	var endless [][]byte
	for n := range byte(30) {
		endless = append(endless, switchTo(2*n+2, "mysql_native_password"))
	}
	for name, c := range map[string]struct {
		cfg     *mysql.Config
		answers [][]byte
		says    string
	}{
		"nothing":            {nil, [][]byte{{}}, "EOF"},
		"another number":     {nil, [][]byte{packet(1, greeting)}, "number 1"},
		"an empty packet":    {nil, [][]byte{packet(0)}, "0 bytes"},
		"another protocol":   {nil, [][]byte{packet(0, []byte{9}, greeting[1:])}, "protocol 9"},
		"a refusal":          {nil, [][]byte{packet(0, []byte("\xff\x10\x04Too many connections"))}, "Error 1040: Too many connections"},
		"a refusal, with #":  {nil, [][]byte{packet(0, greeting), packet(2, []byte("\xff\x15\x04#28000Access denied"))}, "Error 1045 (28000): Access denied"},
		"a cut refusal":      {nil, [][]byte{packet(0, []byte("\xff\x10"))}, "Error 0"},
		"no TLS":             {&mysql.Config{User: "kith", Passwd: "secret-password", TLS: &tls.Config{}}, [][]byte{packet(0, greeting)}, "no TLS"},
		"the password":       {nil, [][]byte{packet(0, with("mysql_clear_password")), switchTo(2, "mysql_clear_password"), packet(4, fine)}, "mysql_clear_password"},
		"an old password":    {nil, [][]byte{packet(0, greeting), packet(2, []byte{0xfe})}, `by ""`},
		"a short ed25519":    {nil, [][]byte{packet(0, greeting), switchTo(2, "client_ed25519")}, "client_ed25519"},
		"no key":             {nil, [][]byte{packet(0, greeting), packet(2, []byte{1, 4}), packet(4, []byte("\x01what"))}, "no key"},
		"a broken key":       {nil, [][]byte{packet(0, greeting), packet(2, []byte{1, 4}), packet(4, []byte("\x01-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"))}, "key"},
		"another answer":     {nil, [][]byte{packet(0, greeting), packet(2, []byte("\xfb/etc/passwd"))}, "0xfb"},
		"an endless one":     {nil, append([][]byte{packet(0, greeting)}, endless...), "keeps asking"},
		"an answer cut off":  {nil, [][]byte{packet(0, greeting), packet(2, fine)[:6]}, "EOF"},
		"a lie about length": {nil, [][]byte{append([]byte{0xfe, 0xff, 0xff, 0}, greeting...)}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, sent, err := served(t, c.cfg, c.answers...)
			check.That(t, err != nil && strings.Contains(err.Error(), c.says), "%v, want %q", err, c.says)
			check.That(t, !bytes.Contains(sent.Bytes(), []byte("secret")), "it has sent %q", sent)
		})
	}
	for n := range len(greeting) - len("\x00caching_sha2_password\x00") {
		_, _, err := served(t, nil, packet(0, greeting[:n]))
		check.That(t, err != nil, "%d bytes are taken for a greeting", n)
	}
}

// stream is a connection on which events come.
func stream(t *testing.T, events ...[]byte) *replica.Conn {
	t.Helper()
	c, _, err := served(t, nil, packet(0, greeting), packet(2, fine), packet(1, fine), packet(1, fine), slices.Concat(events...))
	must.OK(t, err)
	must.OK(t, c.Start(replica.Start{ID: 1, Heartbeat: time.Second, After: replica.Set{}}))
	return c
}

// numbered are packets of a stream.
func numbered(events ...[]byte) (all [][]byte) {
	for i, e := range events {
		all = append(all, packet(byte(i+1), e))
	}
	return all
}

func sent(event []byte) []byte { return append([]byte{0}, event...) }

func TestBrokenStream(t *testing.T) {
	event := binlogtest.Query("BEGIN")
	changed := func(at int, to byte) []byte {
		e := sent(event)
		e[1+at] = to
		return e
	}
	bad := binlogtest.Summed(event)
	bad[len(bad)-1] ^= 1
	ignorable := binlogtest.Event(99)
	ignorable[17] = 0x80
	for name, c := range map[string]struct {
		packets [][]byte
		before  int // events that come ahead of the error
		says    string
	}{
		"an end":              {[][]byte{sent(event), {0xfe, 0, 0, 2, 0}}, 1, "EOF"},
		"a refusal":           {[][]byte{sent(event), []byte("\xff\xd4\x04#HY000Could not find")}, 1, "Error 1236 (HY000): Could not find"},
		"another packet":      {[][]byte{{7}}, 0, "0x7"},
		"no header":           {[][]byte{sent(event[:10])}, 0, "says that it has"},
		"a length too great":  {[][]byte{changed(9, 255)}, 0, "says that it has 255"},
		"a length too small":  {[][]byte{changed(9, 5)}, 0, "says that it has 5"},
		"a checksum":          {[][]byte{sent(binlogtest.Format(true)), sent(binlogtest.Summed(event)), sent(bad)}, 2, "damaged"},
		"no checksum":         {[][]byte{sent(binlogtest.Format(true)), sent(binlogtest.Event(16))}, 1, "damaged"},
		"an unknown kind":     {[][]byte{sent(binlogtest.Format(false)), sent(ignorable), sent(binlogtest.Event(99))}, 2, "kind 99"},
		"an unknown checksum": {[][]byte{sent(binlogtest.Event(15, []byte{4, 0}, make([]byte, 54), []byte{19, 7, 0, 0, 0, 0}))}, 0, "unknown"},
		"other headers":       {[][]byte{sent(binlogtest.Event(15, []byte{4, 0}, make([]byte, 54), []byte{13, 1, 0, 0, 0, 0}))}, 0, "13 bytes"},
		"another version":     {[][]byte{sent(binlogtest.Event(15, []byte{3, 0}))}, 0, "version"},
		"a short format":      {[][]byte{sent(binlogtest.Event(15, []byte{4, 0}))}, 0, "format"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := stream(t, numbered(c.packets...)...)
			for n := 0; ; n++ {
				_, err := conn.Next()
				if err == nil {
					continue
				}
				check.That(t, n == c.before && strings.Contains(err.Error(), c.says), "after %d events: %v; want %d, %q", n, err, c.before, c.says)
				return
			}
		})
	}
	var refused *mysql.MySQLError
	_, err := stream(t, numbered([]byte("\xff\xd4\x04#HY000x"))...).Next()
	check.That(t, errors.As(err, &refused) && refused.Number == 1236, "%v", err)
	_, err = stream(t, numbered([]byte{0xfe})...).Next()
	check.That(t, err == io.EOF, "%v", err)
	whole := slices.Concat(numbered(sent(event), sent(event))...)
	for n := range len(whole) {
		c := stream(t, whole[:n])
		var err error
		events := -1
		for ; err == nil; events++ {
			_, err = c.Next()
		}
		want := n / (len(whole) / 2)
		check.That(t, events == want, "of %d bytes come %d events, want %d", n, events, want)
	}
}

// A packet of 16 MB − 1 has an empty one behind it, and a longer one has its rest.
func TestPacketsInParts(t *testing.T) {
	const most = 1<<24 - 1
	for _, size := range []int{most - 1, most, most + 1, 2 * most} {
		event := sent(binlogtest.Event(29, bytes.Repeat([]byte{7}, size-1-19)))
		var parts [][]byte
		for n := 0; n <= len(event); n += most {
			parts = append(parts, event[n:min(n+most, len(event))])
		}
		c := stream(t, append(numbered(parts...), packet(byte(len(parts)+1), sent(binlogtest.XID())))...)
		e, err := c.Next()
		check.That(t, err == nil && bytes.Equal(e.Raw, event[1:]), "%d bytes: %d, %v", size, len(e.Raw), err)
		e, err = c.Next()
		check.That(t, err == nil && e.Kind == replica.XIDEvent, "after %d bytes: %v", size, err)
	}
}

// allocated is how many bytes f takes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Memory is taken for what has come, not for what was announced.
func TestLiesAboutLengthTakeNoMemory(t *testing.T) {
	var lie []byte
	for n := range byte(20) {
		lie = append(lie, 0xff, 0xff, 0xff, n+1)
		if n == 0 {
			lie = append(lie, 0)
		}
		lie = append(lie, make([]byte, 1000)...)
	}
	c := stream(t, lie)
	took := allocated(func() {
		_, err := c.Next()
		check.That(t, err != nil, "it is taken for an event")
	})
	check.That(t, took <= 1<<20, "%d bytes were taken for %d", took, len(lie))
}

// decode asks an event for everything.
func decode(raw []byte) {
	e, err := replica.ParseEvent(raw)
	if err != nil {
		return
	}
	_, _ = e.Begin()
	_, _, _ = e.Query()
	_, _ = e.Last()
	_, _ = e.TableID()
	_, _ = e.Table(slot)
	for _, t := range mapped {
		rows, err := t.Rows(e)
		if err != nil {
			continue
		}
		rows.Lacks()
		rows.Count()
		var before, row image
		for more := true; more && err == nil; {
			more, err = rows.Next(before[:], row[:])
		}
	}
	if e.Kind == replica.PayloadEvent {
		for _, err := range e.Payload() {
			_ = err
		}
	}
}

// mapped are tables for the fuzzed rows.
var mapped = func() (all []*replica.Table) {
	column := func(name string, kind byte, meta ...byte) binlogtest.Column {
		return binlogtest.Column{Name: name, Type: kind, Meta: meta}
	}
	for _, raw := range [][]byte{
		binlogtest.Table(1, "t", false),
		binlogtest.Table(1, "t", false, column("id", 8), column("v", 1), column("last", 3)),
		binlogtest.Table(1, "t", false, column("a", 15, 44, 1), column("b", 252, 4), column("c", 254, 254, 200), column("d", 246, 30, 4), column("e", 16, 3, 2),
			column("f", 245, 4), column("g", 18, 6), column("h", 254, 247, 2), column("last", 3)),
	} {
		e, err := replica.ParseEvent(raw)
		if err != nil {
			panic(err)
		}
		t, err := e.Table(slot)
		if err != nil {
			panic(err)
		}
		all = append(all, t)
	}
	return all
}()

// FuzzEvent: no event makes the reader panic, or take more memory than a small multiple of its own size.
func FuzzEvent(f *testing.F) {
	image := []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0}
	for _, raw := range [][]byte{
		binlogtest.GTID([16]byte{1}, 5), binlogtest.MariaGTID(0, 7, 1), binlogtest.Query("BEGIN"), binlogtest.XID(), binlogtest.Format(true),
		binlogtest.Event(18, make([]byte, 40)), binlogtest.Event(42, []byte{2, 60, 0, 0, 2, 2}, make([]byte, 40)), binlogtest.Event(163, []byte{1}, make([]byte, 19)),
		binlogtest.Table(1, "t", false, binlogtest.Column{Name: "id", Type: 8}, binlogtest.Column{Name: "v", Type: 252, Meta: []byte{2}}),
		binlogtest.Rows(23, 1, 3, [][]byte{{7}}, image), binlogtest.Rows(31, 1, 3, [][]byte{{7}, {7}}, image, image), binlogtest.Rows(39, 1, 3, [][]byte{{7}, {7}}, image, []byte{0}, image),
		binlogtest.Rows(25, 1, 3, [][]byte{{0}}, image), binlogtest.Rows(166, 1, 3, [][]byte{{7}}, []byte{0x81, 14, 0x78, 0x9c}),
		binlogtest.Payload(binlogtest.Query("BEGIN"), binlogtest.XID()),
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) >= 19 {
			binary.LittleEndian.PutUint32(raw[9:], uint32(len(raw))) // or nothing would be read
		}
		took := allocated(func() { decode(raw) })
		const each, fixed = 1 << 10, 1 << 20
		if len(raw) > 4 && (raw[4] == byte(replica.PayloadEvent) || raw[4] >= 165) {
			return // what is compressed may become larger
		}
		check.That(t, took <= uint64(fixed+each*len(raw)), "%d bytes were taken for an event of %d", took, len(raw))
	})
}
