// SPDX-License-Identifier: Apache-2.0

// Package qmp is a client of the QEMU machine protocol: JSON objects over a Unix
// socket, one reply a command, events in between (QEMU docs/interop/qmp-spec).
package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// maxLine bounds one message; the largest that the lab asks for, the block
// statistics, has a few KiB.
const maxLine = 1 << 20

// Event is something that QEMU says unasked, such as RESET or SHUTDOWN.
type Event struct {
	Name string
	Data json.RawMessage
}

// Client is one QMP connection. Its methods may be called concurrently.
type Client struct {
	conn    net.Conn
	onEvent func(Event)
	done    chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	next    int
	pending map[string]chan message // guarded by mu; nil after the reader has ended
	err     error                   // guarded by mu; why the reader ended
}

// message is every object that QEMU sends: greeting, reply or event.
type message struct {
	QMP    json.RawMessage `json:"QMP"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
	ID    string          `json:"id"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// Dial connects to the socket, retrying until ctx ends because QEMU opens it a
// moment after its start, and negotiates capabilities. onEvent is called on the
// reader's goroutine, in order, and must not block or call the client.
func Dial(ctx context.Context, path string, onEvent func(Event)) (*Client, error) {
	conn, err := connectSocket(ctx, path)
	if err != nil {
		return nil, errkind.New(errkind.Unreachable, "qmp %s: %w", path, err).Do("read qemu.log beside the socket")
	}
	c := &Client{conn: conn, onEvent: onEvent, done: make(chan struct{}), pending: map[string]chan message{}}
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 4096), maxLine)
	if err := readGreeting(ctx, conn, lines); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("qmp %s: greeting: %w", path, err)
	}
	go c.read(lines)
	if err := c.Execute(ctx, "qmp_capabilities", nil, nil); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func connectSocket(ctx context.Context, path string) (net.Conn, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func readGreeting(ctx context.Context, conn net.Conn, lines *bufio.Scanner) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if !lines.Scan() {
		return errors.Join(ctx.Err(), lines.Err(), errors.New("no greeting"))
	}
	m, err := decodeMessage(lines.Bytes())
	if err != nil {
		return err
	}
	if m.QMP == nil {
		return errors.New("the first message is not a QMP greeting")
	}
	return nil
}

func decodeMessage(line []byte) (message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("message: %w", err)
	}
	return m, nil
}

// read serves replies and events until the connection ends.
func (c *Client) read(lines *bufio.Scanner) {
	defer close(c.done)
	err := c.serve(lines)
	c.mu.Lock()
	c.err = err
	pending := c.pending
	c.pending = nil
	c.mu.Unlock()
	for _, ch := range pending {
		close(ch)
	}
	_ = c.conn.Close()
}

func (c *Client) serve(lines *bufio.Scanner) error {
	for lines.Scan() {
		m, err := decodeMessage(lines.Bytes())
		if err != nil {
			return err
		}
		if m.Event != "" {
			if c.onEvent != nil {
				c.onEvent(Event{Name: m.Event, Data: m.Data})
			}
			continue
		}
		c.mu.Lock()
		ch := c.pending[m.ID]
		delete(c.pending, m.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- m // has room for the one reply
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("connection closed by QEMU")
}

// Execute runs one command and decodes its return value into out, unless out is
// nil. It waits for the reply until ctx ends; callers set a deadline.
func (c *Client) Execute(ctx context.Context, command string, args, out any) error {
	ch, id, err := c.register()
	if err != nil {
		return fmt.Errorf("qmp %s: %w", command, err)
	}
	if err := c.send(ctx, id, command, args); err != nil {
		c.forget(id)
		return fmt.Errorf("qmp %s: send: %w", command, err)
	}
	select {
	case <-ctx.Done():
		c.forget(id)
		return errkind.New(errkind.Timeout, "qmp %s: no reply: %w", command, ctx.Err())
	case m, ok := <-ch:
		switch {
		case !ok:
			return errkind.New(errkind.Unreachable, "qmp %s: %w", command, c.Err())
		case m.Error != nil:
			return errkind.New(errkind.Refused, "qmp %s: %s: %s", command, m.Error.Class, m.Error.Desc)
		case out == nil:
			return nil
		}
		if err := json.Unmarshal(m.Return, out); err != nil {
			return fmt.Errorf("qmp %s: return value: %w", command, err)
		}
		return nil
	}
}

func (c *Client) register() (chan message, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		return nil, "", c.err
	}
	c.next++
	id := strconv.Itoa(c.next)
	ch := make(chan message, 1)
	c.pending[id] = ch
	return ch, id, nil
}

func (c *Client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

func (c *Client) send(ctx context.Context, id, command string, args any) error {
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        string `json:"id"`
	}{command, args, id})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(10 * time.Second)
	}
	if err := c.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err = c.conn.Write(append(line, '\n'))
	return err
}

// Err says why the connection ended; nil while it lives.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection and waits for the reader.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.done
	return err
}
