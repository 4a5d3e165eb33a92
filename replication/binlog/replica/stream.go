package replica

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"
)

// Start says where a stream begins, and for whom.
type Start struct {
	ID        uint32        // of this replica, unlike those of all other replicas and of the server
	Heartbeat time.Duration // how often an idle server sends an event
	After     Set           // the transactions that are not sent
	File      string        // if not empty, the stream begins with this file, whatever After says
}

// Start requests the binlog. See page_protocol_replication.
func (c *Conn) Start(s Start) error {
	// User variables by which servers, of either kind, learn what a replica wants and understands. A server that writes checksums
	// sends them, so that damage is noticed here.
	set := fmt.Sprintf("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum, "+
		"@master_heartbeat_period = %d, @source_heartbeat_period = %[1]d", s.Heartbeat.Nanoseconds())
	if c.mariaDB {
		set += ", @mariadb_slave_capability = 4" // it understands GTIDs
		if s.File == "" {
			set += fmt.Sprintf(", @slave_connect_state = '%s', @slave_gtid_strict_mode = 1", s.After)
		}
	}
	const comQuery, comBinlogDump, comRegisterReplica, comBinlogDumpGTID = 0x03, 0x12, 0x15, 0x1e
	if err := c.ask(comQuery, []byte(set)); err != nil {
		return fmt.Errorf("say what is wanted: %w", err)
	}
	id, le := binary.LittleEndian.AppendUint32(nil, s.ID), binary.LittleEndian

	// Then SHOW REPLICAS names it. See page_protocol_com_register_replica.
	host, _ := os.Hostname()
	host = host[:min(len(host), 60)] // longer ones are refused
	replica := append(append(id[:4:4], byte(len(host))), host...)
	if err := c.ask(comRegisterReplica, append(replica, make([]byte, 1+1+2+4+4)...)); err != nil { // no user, password, port; rank, source
		return fmt.Errorf("register: %w", err)
	}
	const begin = 4 // of the first event in each file
	if c.mariaDB || s.File != "" {
		dump := append(le.AppendUint32(nil, begin), 0, 0) // flags
		return c.command(comBinlogDump, append(append(dump, id...), s.File...))
	}
	after := s.After.encode()
	dump := append([]byte{0, 0}, id...)
	dump = le.AppendUint64(append(dump, 0, 0, 0, 0), begin) // no file
	return c.command(comBinlogDumpGTID, append(le.AppendUint32(dump, uint32(len(after))), after...))
}

// ask sends a command, and reads the answer.
func (c *Conn) ask(kind byte, body []byte) error {
	if err := c.command(kind, body); err != nil {
		return err
	}
	return c.ok()
}

// Next waits for the next event. An error that the server has sent is a [*mysql.MySQLError]; io.EOF means that it has ended the stream.
func (c *Conn) Next() (Event, error) {
	packet, err := c.read()
	if err != nil {
		return Event{}, err
	}
	switch packet[0] {
	case isOK:
	case isErr:
		return Event{}, failure(packet)
	case isEOF:
		return Event{}, io.EOF
	default:
		return Event{}, fmt.Errorf("%w: a packet that begins with %#x", errBroken, packet[0])
	}
	e, err := ParseEvent(packet[1:])
	if err != nil {
		return e, err
	}
	if e.Kind == FormatEvent {
		if c.sum, err = e.checksum(); err != nil {
			return e, err
		}
	}
	if c.sum == 0 {
		return e, nil
	}
	end := len(e.Raw) - c.sum
	if end < headerSize || crc32.ChecksumIEEE(e.Raw[:end]) != binary.LittleEndian.Uint32(e.Raw[end:]) {
		return e, fmt.Errorf("an event (kind %d, at %d of its file) is damaged: its checksum is not its own", e.Kind, binary.LittleEndian.Uint32(e.Raw[13:]))
	}
	e.Raw = e.Raw[:end:end]
	return e, nil
}
