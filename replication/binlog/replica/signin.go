package replica

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // what the protocol uses
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"filippo.io/edwards25519"
	"github.com/go-sql-driver/mysql"
)

// Capabilities (group__group__cs__capabilities__flags) that a client needs.
const (
	clientTLS    = 1 << 11
	capabilities = 1<<0 | 1<<2 | 1<<9 | 1<<13 | 1<<15 | 1<<19 | 1<<21 // long password and flags, protocol 4.1, transactions, a salt of 20 bytes, plugins, long answers
)

// utf8mb4 is utf8mb4_general_ci, a collation that all servers have.
const utf8mb4 = 45

// Open signs in on a connection, encrypted if the configuration says so. The caller closes the connection. See page_protocol_connection_phase.
func Open(ctx context.Context, raw net.Conn, cfg *mysql.Config) (*Conn, error) {
	c := &Conn{raw: raw, in: bufio.NewReaderSize(raw, buffered)}
	packet, err := c.read()
	if err != nil {
		return nil, err
	}
	if packet[0] == isErr {
		return nil, failure(packet)
	}
	g := cursor{rest: packet}
	if version := g.number(1); version != 10 {
		return nil, fmt.Errorf("%w: protocol %d", errBroken, version)
	}
	c.mariaDB = strings.Contains(g.text(), "MariaDB")
	g.bytes(4) // number of the connection
	salt := slices.Clone(g.bytes(8))
	g.bytes(1)
	can := g.number(2)
	g.bytes(3) // collation, status
	can |= g.number(2) << 16
	rest := max(13, int(g.number(1))-8)
	g.bytes(10)
	salt = append(salt, g.bytes(uint64(rest))...)
	if err := g.err("the server's greeting"); err != nil {
		return nil, err
	}
	s := signIn{Conn: c, cfg: cfg, plugin: g.text(), salt: salt[:len(salt)-1], secret: cfg.Net == "unix"}

	about := binary.LittleEndian.AppendUint32(nil, capabilities)
	about = append(about, 0, 0, 0, 0, utf8mb4)
	about = append(about, make([]byte, 23)...)
	switch {
	case cfg.TLS == nil:
	case can&clientTLS != 0:
		about[1] |= clientTLS >> 8
		if err := c.write(about); err != nil {
			return nil, err
		}
		encrypted := tls.Client(raw, cfg.TLS)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		c.raw, c.in, c.used, s.secret = encrypted, bufio.NewReaderSize(encrypted, buffered), 0, true // what came unencrypted after the greeting is dropped
	case !cfg.AllowFallbackToPlaintext:
		return nil, errors.New("the server has no TLS")
	}
	return c, s.run(about)
}

// signIn is the exchange by which a user is recognised.
type signIn struct {
	*Conn
	cfg    *mysql.Config
	plugin string // how the password is proved
	salt   []byte
	secret bool // nobody else can read the connection
}

// run signs in. See page_protocol_connection_phase_packets_protocol_handshake_response.
func (s *signIn) run(about []byte) error {
	proof, err := s.proof()
	if err != nil { // the account may have another plugin than the server's default
		s.plugin = "mysql_native_password"
		if proof, err = s.proof(); err != nil {
			return err
		}
	}
	about = append(append(about, s.cfg.User...), 0)
	if len(proof) < 251 {
		about = append(about, byte(len(proof)))
	} else {
		about = binary.LittleEndian.AppendUint16(append(about, 0xfc), uint16(len(proof)))
	}
	about = append(append(append(about, proof...), s.plugin...), 0)
	if err := s.write(about); err != nil {
		return err
	}
	const most = 8 // answers: another plugin, its key, OK
	for range most {
		packet, err := s.read()
		if err != nil {
			return err
		}
		switch a := (cursor{rest: packet[1:]}); packet[0] {
		case isOK:
			return nil
		case isErr:
			return failure(packet)
		case isEOF: // use another plugin
			s.plugin = a.text()
			if s.salt = slices.Clone(a.rest); len(s.salt) == 20+1 { // with a NUL; one of 32 bytes has none
				s.salt = s.salt[:20]
			}
			if proof, err = s.proof(); err == nil {
				err = s.write(proof)
			}
		case isMore:
			err = s.more(packet[1:])
		default:
			err = fmt.Errorf("%w: an answer that begins with %#x", errBroken, packet[0])
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: it keeps asking for the password", errBroken)
}

// proof is what shows that this end knows the password.
func (s *signIn) proof() ([]byte, error) {
	password := []byte(s.cfg.Passwd)
	switch {
	case s.plugin == "client_ed25519" && len(s.salt) == 32:
		return ed25519Proof(s.salt, password)
	case s.plugin == "sha256_password" && (s.secret || len(password) == 0):
		return append(password, 0), nil
	case s.plugin == "sha256_password":
		return []byte{1}, nil // asks for the key
	case s.plugin == "mysql_native_password" && len(password) > 0: // page_protocol_connection_phase_authentication_methods_native_password_authentication
		once := sha1.Sum(password)                                   //nolint:gosec // what the protocol uses
		twice := sha1.Sum(once[:])                                   //nolint:gosec // what the protocol uses
		proof := sha1.Sum(append(slices.Clone(s.salt), twice[:]...)) //nolint:gosec // what the protocol uses
		subtle.XORBytes(proof[:], proof[:], once[:])
		return proof[:], nil
	case s.plugin == "caching_sha2_password" && len(password) > 0: // page_caching_sha2_authentication_exchanges
		once := sha256.Sum256(password)
		twice := sha256.Sum256(once[:])
		proof := sha256.Sum256(append(twice[:], s.salt...))
		subtle.XORBytes(proof[:], proof[:], once[:])
		return proof[:], nil
	case s.plugin == "mysql_native_password", s.plugin == "caching_sha2_password":
		return nil, nil
	}
	return nil, fmt.Errorf("the server wants the password by %q, which this program does not know", s.plugin)
}

// more goes on after the proof: the server has recognised it and will say OK, or wants the password itself, which is sent only if nobody else can read it,
// or has sent the key by which to encrypt it.
func (s *signIn) more(says []byte) error {
	const recognised, wanted, sendKey = 3, 4, 2
	password := append([]byte(s.cfg.Passwd), 0)
	switch {
	case len(says) == 1 && says[0] == recognised:
		return nil
	case len(says) == 1 && says[0] == wanted && s.secret:
		return s.write(password)
	case len(says) == 1 && says[0] == wanted:
		return s.write([]byte{sendKey})
	}
	block, _ := pem.Decode(says)
	if block == nil || len(s.salt) == 0 {
		return fmt.Errorf("%w: %d bytes that are no key", errBroken, len(says))
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("the server's key: %w", err)
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return fmt.Errorf("%w: its key is no RSA key", errBroken)
	}
	for i := range password {
		password[i] ^= s.salt[i%len(s.salt)]
	}
	encrypted, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, key, password, nil) //nolint:gosec // what the protocol uses
	if err != nil {
		return err
	}
	return s.write(encrypted)
}

// ed25519Proof signs the salt by a key made of the password. The scheme is Ed25519, whose library would hash a seed instead
// (https://mariadb.com/kb/en/authentication-plugin-ed25519/).
func ed25519Proof(salt, password []byte) ([]byte, error) {
	secret := sha512.Sum512(password)
	key, err := edwards25519.NewScalar().SetBytesWithClamping(secret[:32])
	if err != nil {
		return nil, err
	}
	scalar := func(parts ...[]byte) *edwards25519.Scalar {
		sum := sha512.Sum512(slices.Concat(parts...))
		s, _ := edwards25519.NewScalar().SetUniformBytes(sum[:]) // it has 64 bytes
		return s
	}
	nonce := scalar(secret[32:], salt)
	point := new(edwards25519.Point).ScalarBaseMult(nonce).Bytes()
	public := new(edwards25519.Point).ScalarBaseMult(key).Bytes()
	return append(point, edwards25519.NewScalar().MultiplyAdd(scalar(point, public, salt), key, nonce).Bytes()...), nil
}
