package network

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// streamBuffer is how many bytes may be under way in one direction.
const streamBuffer = 64 << 10

// streamPair makes the two ends of a connection.
func streamPair(a, b net.Addr) (net.Conn, net.Conn) {
	there, back := newFlow(), newFlow()
	return &streamConn{in: back, out: there, local: a, remote: b}, &streamConn{in: there, out: back, local: b, remote: a}
}

// streamConn is one end of a connection in memory.
type streamConn struct {
	in, out       *flow
	local, remote net.Addr
}

func (c *streamConn) err(op string, err error) error {
	if err == nil || err == io.EOF {
		return err // readers compare with io.EOF itself
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// Read reads what has come.
func (c *streamConn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.err("read", err)
}

// Write waits for room.
func (c *streamConn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.err("write", err)
}

// CloseWrite tells the other end that no more comes.
func (c *streamConn) CloseWrite() error {
	c.out.change(func(f *flow) { f.ended = true })
	return nil
}

// Close ends both directions.
func (c *streamConn) Close() error {
	was := false
	c.in.change(func(f *flow) { was, f.dropped = f.dropped, true })
	c.out.change(func(f *flow) { f.ended, f.closed = true, true })
	if was {
		return c.err("close", net.ErrClosed)
	}
	return nil
}

// LocalAddr returns this end.
func (c *streamConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end.
func (c *streamConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline bounds reads and writes.
func (c *streamConn) SetDeadline(t time.Time) error {
	c.in.readBy.set(&c.in.mu, c.in.cond, t)
	c.out.writeBy.set(&c.out.mu, c.out.cond, t)
	return nil
}

// SetReadDeadline bounds reads.
func (c *streamConn) SetReadDeadline(t time.Time) error {
	c.in.readBy.set(&c.in.mu, c.in.cond, t)
	return nil
}

// SetWriteDeadline bounds writes.
func (c *streamConn) SetWriteDeadline(t time.Time) error {
	c.out.writeBy.set(&c.out.mu, c.out.cond, t)
	return nil
}

// flow is one direction of a connection.
type flow struct {
	mu      sync.Mutex // guards all that follows
	cond    *sync.Cond
	data    []byte
	ended   bool // the writer sends no more
	closed  bool // the writer closed its end
	dropped bool // the reader closed its end
	readBy  deadline
	writeBy deadline
}

func newFlow() *flow {
	f := &flow{}
	f.cond = sync.NewCond(&f.mu)
	return f
}

func (f *flow) change(do func(*flow)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f)
	f.cond.Broadcast()
}

func (f *flow) read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.dropped:
			return 0, net.ErrClosed
		case f.readBy.over:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case len(f.data) > 0:
			n := copy(p, f.data)
			if f.data = f.data[n:]; len(f.data) == 0 {
				f.data = nil
			}
			f.cond.Broadcast()
			return n, nil
		case f.ended:
			return 0, io.EOF
		}
		f.cond.Wait()
	}
}

func (f *flow) write(p []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.closed:
			return n, net.ErrClosed
		case f.ended || f.dropped:
			return n, syscall.EPIPE
		case f.writeBy.over:
			return n, os.ErrDeadlineExceeded
		}
		room := min(streamBuffer-len(f.data), len(p)-n)
		f.data = append(f.data, p[n:n+room]...)
		n += room
		if room > 0 {
			f.cond.Broadcast()
		}
		if n == len(p) {
			return n, nil
		}
		f.cond.Wait()
	}
}

// deadline is a moment after which waiting is over. Its owner's mutex guards it.
type deadline struct {
	timer *time.Timer
	turn  int // tells an old timer that it is no longer asked
	over  bool
}

func (d *deadline) set(mu *sync.Mutex, cond *sync.Cond, t time.Time) {
	mu.Lock()
	defer mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.turn++
	d.over = false
	if !t.IsZero() {
		turn := d.turn
		if wait := time.Until(t); wait <= 0 {
			d.over = true
		} else {
			d.timer = time.AfterFunc(wait, func() {
				mu.Lock()
				defer mu.Unlock()
				if d.turn == turn {
					d.over = true
					cond.Broadcast()
				}
			})
		}
	}
	cond.Broadcast()
}
