package replica

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"
)

// Conn is a connection to a server. It is used by one goroutine at a time.
type Conn struct {
	raw     net.Conn
	in      *bufio.Reader
	used    int  // bytes of in that the last packet took
	next    byte // number of the next packet
	mariaDB bool
	sum     int // bytes of the checksum behind each event
}

const (
	maxPart   = 1<<24 - 1     // bytes; a longer packet comes in several parts
	maxPacket = 1<<30 + 1<<20 // servers have no longer ones: max_allowed_packet is at most 1 GB
	buffered  = 64 << 10
)

// errBroken means that no server sends such bytes.
var errBroken = errors.New("the server sent what makes no sense")

// read returns the next packet, which is never empty. It is valid until the next call. See page_protocol_basic_packets.
func (c *Conn) read() ([]byte, error) {
	var long bytes.Buffer
	for parts := 0; ; parts++ {
		_, _ = c.in.Discard(c.used) // these are there
		c.used = 0
		head, err := c.in.Peek(4)
		if err != nil {
			return nil, fmt.Errorf("read a packet: %w", err)
		}
		size, number := int(binary.LittleEndian.Uint32(head)&maxPart), head[3]
		if number != c.next || long.Len()+size > maxPacket || size == 0 && parts == 0 {
			return nil, fmt.Errorf("%w: a packet with the number %d, not %d, of %d bytes", errBroken, number, c.next, long.Len()+size)
		}
		c.next++
		if parts == 0 && 4+size <= c.in.Size() {
			c.used = 4 + size
			whole, err := c.in.Peek(c.used)
			if err != nil {
				return nil, fmt.Errorf("read a packet: %w", err)
			}
			return whole[4:], nil
		}
		_, _ = c.in.Discard(4)
		if _, err := io.CopyN(&long, c.in, int64(size)); err != nil {
			return nil, fmt.Errorf("read a packet: %w", err)
		}
		if size < maxPart {
			return long.Bytes(), nil
		}
	}
}

// write sends a packet.
func (c *Conn) write(packet []byte) error {
	if len(packet) >= maxPart {
		return fmt.Errorf("a packet of %d bytes is too long", len(packet))
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(packet))|uint32(c.next)<<24)
	c.next++
	_, err := c.raw.Write(append(head, packet...))
	return err
}

// command sends a packet that begins an exchange.
func (c *Conn) command(kind byte, body []byte) error {
	c.next = 0
	return c.write(append([]byte{kind}, body...))
}

// The first bytes of answers.
const (
	isOK   = 0x00
	isMore = 0x01 // more about signing in
	isEOF  = 0xfe
	isErr  = 0xff
)

// ok reads an answer that has no rows.
func (c *Conn) ok() error {
	answer, err := c.read()
	switch {
	case err != nil:
		return err
	case answer[0] == isErr:
		return failure(answer)
	case answer[0] != isOK:
		return fmt.Errorf("%w: an answer that begins with %#x", errBroken, answer[0])
	}
	return nil
}

// failure is the error that a server has sent: a [*mysql.MySQLError]. See page_protocol_basic_err_packet.
func failure(packet []byte) error {
	c := cursor{rest: packet[1:]}
	e := &mysql.MySQLError{Number: uint16(c.number(2))}
	if len(c.rest) > 5 && c.rest[0] == '#' {
		copy(e.SQLState[:], c.bytes(6)[1:])
	}
	e.Message = string(c.rest)
	return e
}

// A cursor takes bytes apart, from their beginning. Bytes that are missing read as zero, and this
// is noted.
type cursor struct {
	rest  []byte
	short bool
}

func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.rest, c.short = nil, true
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

// number reads an integer of some bytes, the lowest first.
func (c *cursor) number(size uint64) (n uint64) {
	for i, b := range c.bytes(size) {
		n |= uint64(b) << (8 * i)
	}
	return n
}

// packed reads an integer of 1, 3, 4 or 9 bytes ("length-encoded", page_protocol_basic_dt_integers).
func (c *cursor) packed() uint64 {
	switch first := c.number(1); first {
	case 0xfc:
		return c.number(2)
	case 0xfd:
		return c.number(3)
	case 0xfe:
		return c.number(8)
	default:
		return first
	}
}

// text reads what ends with a NUL.
func (c *cursor) text() string {
	end := bytes.IndexByte(c.rest, 0)
	if end < 0 {
		end = len(c.rest)
		c.short = true
	}
	s := string(c.bytes(uint64(end)))
	c.bytes(1)
	return s
}

// err is nil if everything was there.
func (c *cursor) err(what string) error {
	if c.short {
		return fmt.Errorf("%w: %s is cut off", errBroken, what)
	}
	return nil
}
