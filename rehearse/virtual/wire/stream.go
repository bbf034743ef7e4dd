// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// slack is a wait that is not worth a timer: it is made up for by the next one,
// since the lane stays taken.
const slack = time.Millisecond

// stream is the node's end of a connection.
type stream struct {
	net.Conn
	wire   *Wire
	factor float64 // above zero: instead of the wire's for the port
	port   uint16  // dialled; 0: accepted

	turn   chan struct{} // holds one token; who has it reads, and owns the next two
	parked []byte        // taken from Conn, not handed on
	due    time.Time     // of the wire's clock: when it has passed

	mu      sync.Mutex // guards what follows
	by      time.Time  // deadline of reads
	ctx     context.Context
	changed context.CancelCauseFunc // ends ctx: the deadline changed, or the end was closed
	closed  bool
}

// errChanged is why a wait ends that has to be looked at again.
var errChanged = errors.New("deadline changed")

func newStream(w *Wire, c net.Conn, factor float64, port uint16) *stream {
	s := &stream{Conn: c, wire: w, factor: factor, port: port, turn: make(chan struct{}, 1)}
	s.ctx, s.changed = context.WithCancelCause(context.Background())
	s.turn <- struct{}{}
	return s
}

// Read reads what has come through the cable.
func (s *stream) Read(p []byte) (int, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer func() { s.turn <- struct{}{} }()
	if len(p) == 0 {
		return 0, nil
	}
	if len(s.parked) > 0 {
		n, err := s.let(s.parked[:min(len(p), len(s.parked))])
		copy(p, s.parked[:n])
		s.park(s.parked[n:])
		return n, err
	}
	come, err := s.Conn.Read(p[:s.wire.most(s, len(p))])
	if come == 0 {
		return 0, s.ended(err)
	}
	s.due = s.wire.pass(s, come)
	n, err := s.let(p[:come])
	s.park(p[n:come])
	return n, err
}

// begin waits for the stream's other readers.
func (s *stream) begin() error {
	select {
	case <-s.turn:
		return nil
	default:
	}
	return s.await(func(ctx context.Context) (bool, error) {
		select {
		case <-s.turn:
			return true, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	})
}

// park keeps what was taken from the inner connection and not handed on.
func (s *stream) park(b []byte) {
	if len(b) == 0 {
		s.parked = nil
		return
	}
	s.parked = append([]byte(nil), b...)
}

// let waits until b has passed the cable and until something may come out of it,
// and returns how much of it may.
func (s *stream) let(b []byte) (n int, err error) {
	if s.due.Sub(s.wire.clk.Now()) >= slack {
		if err := s.await(s.arrive); err != nil {
			return 0, err
		}
	}
	return s.gate(func() (int, <-chan struct{}) { return s.wire.take(s, len(b)) })
}

// arrive waits until what was read has passed the cable.
func (s *stream) arrive(ctx context.Context) (bool, error) {
	wait := s.due.Sub(s.wire.clk.Now())
	if wait <= 0 {
		return true, nil
	}
	err := s.wire.clk.Sleep(ctx, wait)
	return err == nil, err
}

// gate waits until ask grants something.
func (s *stream) gate(ask func() (int, <-chan struct{})) (int, error) {
	n, turned := ask()
	if n > 0 {
		return n, nil
	}
	err := s.await(func(ctx context.Context) (bool, error) {
		select {
		case <-turned:
			n, turned = ask()
			return n > 0, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	})
	return n, err
}

// ended passes on the end of the inner connection, which does not come through a
// cable that is cut or stalled. The inner connection tells it again when asked.
func (s *stream) ended(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
		return err
	}
	if _, stuck := s.gate(func() (int, <-chan struct{}) { return s.wire.open(s) }); stuck != nil {
		return stuck
	}
	return err
}

// await calls step, with a context that ends with the read deadline and with the
// stream, until it is done.
func (s *stream) await(step func(context.Context) (done bool, err error)) error {
	for {
		s.mu.Lock()
		closed, by, ctx := s.closed, s.by, s.ctx
		s.mu.Unlock()
		cancel := func() {}
		switch {
		case closed:
			return s.err(net.ErrClosed)
		case !by.IsZero() && !time.Now().Before(by):
			return s.err(os.ErrDeadlineExceeded)
		case !by.IsZero():
			ctx, cancel = context.WithDeadline(ctx, by)
		}
		done, err := step(ctx)
		cancel()
		if done {
			return nil
		}
		if err != nil && !errors.Is(err, errChanged) && !errors.Is(err, context.DeadlineExceeded) {
			return s.err(err)
		}
	}
}

func (s *stream) err(err error) error {
	return &net.OpError{Op: "read", Net: s.LocalAddr().Network(), Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}

// change changes what waiting reads look at, and lets them look again.
func (s *stream) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	s.changed(errChanged)
	s.ctx, s.changed = context.WithCancelCause(context.Background())
}

// Close ends both directions.
func (s *stream) Close() error {
	s.change(func() { s.closed = true })
	return s.Conn.Close()
}

// CloseWrite tells the other end that no more comes.
func (s *stream) CloseWrite() error {
	if h, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SetDeadline bounds reads and writes.
func (s *stream) SetDeadline(t time.Time) error {
	s.change(func() { s.by = t })
	return s.Conn.SetDeadline(t)
}

// SetReadDeadline bounds reads.
func (s *stream) SetReadDeadline(t time.Time) error {
	s.change(func() { s.by = t })
	return s.Conn.SetReadDeadline(t)
}

// factorOf is how many bytes each byte of a stream counts as. w.mu is held.
func (w *Wire) factorOf(s *stream) float64 {
	if s.factor > 0 {
		return s.factor
	}
	if f := w.scale[s.port]; f > 0 && s.port != 0 {
		return f
	}
	return 1
}

// most is how many bytes a stream may take at a time: with a rate, one chunk.
func (w *Wire) most(s *stream, n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own.rate > 0 || w.uplink != nil {
		n = min(n, max(1, int(chunk/w.factorOf(s))))
	}
	return n
}

// pass reserves the way for bytes that a stream has received and returns when
// they have passed.
func (w *Wire) pass(s *stream, n int) (due time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own.rate <= 0 && w.uplink == nil {
		return time.Time{}
	}
	now, bytes := w.clk.Now(), float64(n)*w.factorOf(s)
	due = w.own.reserve(now, bytes)
	if w.uplink != nil {
		if up := w.uplink.reserve(now, bytes); up.After(due) {
			due = up
		}
	}
	return due
}

// take returns how many of n bytes may come out of the cable now, and counts
// them; or 0 and what to wait for.
func (w *Wire) take(s *stream, n int) (int, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return 0, w.turned
	}
	left, stalls := w.stalls[s.port]
	if !stalls || s.port == 0 {
		return n, nil
	}
	n = int(min(int64(n), left))
	w.stalls[s.port] = left - int64(n)
	return n, w.turned
}

// open returns 1 when the end of a stream may come out of the cable; or 0 and
// what to wait for.
func (w *Wire) open(s *stream) (int, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left, stalls := w.stalls[s.port]; w.cut || stalls && s.port != 0 && left == 0 {
		return 0, w.turned
	}
	return 1, nil
}
