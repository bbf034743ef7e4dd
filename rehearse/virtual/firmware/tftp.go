// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/network"
)

// Packets of TFTP (RFC 1350, RFC 2347).
const (
	opRead  = 1
	opData  = 3
	opAck   = 4
	opError = 5
	opOAck  = 6
)

// Limits of the ROMs' clients.
const (
	tftpPort  = 69
	tftpWait  = 4 * time.Second // for an answer, then the last packet is sent again
	tftpTries = 6
	maxLoader = 16 << 20
	maxBlock  = 1468
	maxIdle   = 64 // packets in a row that bring nothing new
)

// transfer is one read request of a boot ROM.
type transfer struct {
	body   io.Writer
	conn   net.PacketConn
	server netip.AddrPort // 69 until the server has chosen its port
	chosen bool
	block  int   // bytes
	window int   // blocks an acknowledgement
	size   int64 // by tsize; -1: not told
}

// errRefused is an ERROR packet.
var errRefused = errors.New("refused")

// loadFile fetches a loader as ROMs do: first a request for its size, which is ended
// with an error once it is known, then the transfer (seen on EDK2). It returns
// how many bytes came.
func loadFile(ctx context.Context, n network.Network, from, server netip.Addr, name string, block, window int) (int64, error) {
	size, err := readFile(ctx, n, from, server, name, block, window, true, io.Discard)
	if err != nil {
		return 0, err
	}
	got, err := readFile(ctx, n, from, server, name, block, window, false, io.Discard)
	if err == nil && size >= 0 && got != size {
		err = fmt.Errorf("%d bytes came of %d", got, size)
	}
	return got, err
}

// readFile does one request. With ask it stops at the server's options and
// returns the size, or -1 when the server has no options; without, body gets the file.
func readFile(ctx context.Context, n network.Network, from, server netip.Addr, name string, block, window int, ask bool, body io.Writer) (int64, error) {
	conn, err := n.ListenPacket(ctx, "udp4", netip.AddrPortFrom(from, 0).String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	t := &transfer{body: body, conn: conn, server: netip.AddrPortFrom(server, tftpPort), block: 512, window: 1, size: -1}
	first, err := t.exchange(ctx, readRequest(name, block, window, ask))
	if err != nil {
		return 0, err
	}
	op, arg, data := parsePacket(first)
	switch {
	case op == opData && arg == 1: // a server without options
		if ask {
			t.abort()
			return -1, nil
		}
		return t.receive(ctx, first)
	case op != opOAck:
		return 0, fmt.Errorf("packet %d instead of an answer", op)
	case !t.options(data, block, window):
		t.abort()
		return 0, errors.New("the server chose options that were not asked for")
	case ask:
		t.abort()
		return t.size, nil
	}
	return t.receive(ctx, nil)
}

// receive acknowledges what came first and reads to the end of the file.
func (t *transfer) receive(ctx context.Context, first []byte) (n int64, err error) {
	var have uint16 // last block in order
	next, inWindow := first, 0
	for idle := 0; idle < maxIdle; idle++ {
		if next == nil {
			if next, err = t.exchange(ctx, ackPacket(have)); err != nil {
				return n, err
			}
			inWindow = 0
		}
		op, block, data := parsePacket(next)
		if op != opData && op != opOAck {
			t.abort()
			return n, fmt.Errorf("packet %d in a transfer", op)
		}
		fresh := op == opData && block == have+1 && len(data) <= t.block
		repeated := block == have // our acknowledgement was lost; an OACK counts as block 0
		if fresh {
			have, inWindow, idle, n = have+1, inWindow+1, 0, n+int64(len(data))
			_, _ = t.body.Write(data) // what it did not take is missing from it
			if len(data) < t.block {
				t.send(ackPacket(have))
				return n, nil
			}
		}
		if next = nil; repeated || fresh && inWindow == t.window {
			continue
		}
		if next, err = t.more(ctx); err != nil {
			return n, err
		}
		if n > maxLoader {
			break
		}
	}
	t.abort()
	return n, errors.New("the server does not come to an end")
}

// more waits for the next block of a window. When none comes, or one is missing
// before it, what is here is acknowledged (RFC 7440, section 4).
func (t *transfer) more(ctx context.Context) ([]byte, error) {
	p, err := t.nextPacket(ctx, tftpWait)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil
	}
	return p, err
}

// exchange sends a packet until something comes back.
func (t *transfer) exchange(ctx context.Context, q []byte) ([]byte, error) {
	for range tftpTries {
		t.send(q)
		p, err := t.nextPacket(ctx, tftpWait)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return p, err
		}
	}
	return nil, fmt.Errorf("%s does not answer: %w", t.server, os.ErrDeadlineExceeded)
}

func (t *transfer) send(q []byte) {
	_, _ = t.conn.WriteTo(q, net.UDPAddrFromAddrPort(t.server)) // lost, and sent again
}

// abort tells the server to stop; nothing is awaited.
func (t *transfer) abort() { t.send([]byte("\x00\x05\x00\x00TFTP Aborted\x00")) }

// nextPacket returns the next packet of the server, whose port is chosen by its first.
func (t *transfer) nextPacket(ctx context.Context, wait time.Duration) ([]byte, error) {
	if err := t.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	b := make([]byte, maxBlock+4)
	for {
		n, from, err := t.conn.ReadFrom(b)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		u, ok := from.(*net.UDPAddr)
		if !ok || n < 4 || u.AddrPort().Addr().Unmap() != t.server.Addr() || t.chosen && u.AddrPort().Port() != t.server.Port() {
			continue
		}
		t.server, t.chosen = netip.AddrPortFrom(t.server.Addr(), u.AddrPort().Port()), true
		if op, code, text := parsePacket(b[:n]); op == opError {
			text, _, _ = bytes.Cut(text, []byte{0})
			return nil, fmt.Errorf("%w: %s (error %d)", errRefused, text, code)
		}
		return b[:n], nil
	}
}

// options reads an OACK (RFC 2347, 2348, 2349, 7440). A server may choose less
// than was asked for, and nothing else.
func (t *transfer) options(data []byte, block, window int) bool {
	words := strings.Split(string(data), "\x00")
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i+1], 10, 64)
		if err != nil {
			return false
		}
		switch strings.ToLower(words[i]) {
		case "blksize":
			if n < 8 || n > int64(block) {
				return false
			}
			t.block = int(n)
		case "windowsize":
			if n < 1 || n > int64(window) {
				return false
			}
			t.window = int(n)
		case "tsize":
			if n < 0 || n > maxLoader {
				return false
			}
			t.size = n
		default:
			return false
		}
	}
	return true
}

// parsePacket splits a packet; the argument is the block or the code of an error. A
// packet of options has no argument.
func parsePacket(p []byte) (op, arg uint16, data []byte) {
	if len(p) < 4 {
		return 0, 0, nil
	}
	op = binary.BigEndian.Uint16(p)
	if op == opOAck {
		return op, 0, p[2:]
	}
	return op, binary.BigEndian.Uint16(p[2:]), p[4:]
}

func readRequest(name string, block, window int, size bool) []byte {
	words := []string{name, "octet"}
	if size {
		words = append(words, "tsize", "0")
	}
	words = append(words, "blksize", strconv.Itoa(block))
	if window > 1 {
		words = append(words, "windowsize", strconv.Itoa(window))
	}
	return append([]byte{0, opRead}, strings.Join(words, "\x00")+"\x00"...)
}

func ackPacket(block uint16) []byte { return binary.BigEndian.AppendUint16([]byte{0, opAck}, block) }
