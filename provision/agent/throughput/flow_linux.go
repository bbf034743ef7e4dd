// SPDX-License-Identifier: Apache-2.0

package throughput

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/wire"
)

const (
	// slot is what received bytes are counted by.
	slot = 50 * time.Millisecond
	// startShare of a direction is left out: TCP finds out what the path carries.
	startShare = 6
	// longer is how much longer is sent than counted, so that the end that counts sees a whole time.
	longer     = 200 * time.Millisecond
	blockBytes = 256 << 10
)

// meter counts what comes over all connections of a direction, by slots since the first byte.
type meter struct {
	base  time.Time
	first atomic.Int64 // since base, nanoseconds and one; 0: nothing came yet
	slots []atomic.Int64
}

func newMeter(long time.Duration) *meter {
	return &meter{base: wall.Now(), slots: make([]atomic.Int64, max(int(long/slot), startShare))}
}

// receive counts what comes until the other end is done, or nobody waits for it any more.
func (m *meter) receive(ctx context.Context, c *net.TCPConn) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_ = c.SetReadDeadline(wall.Now().Add(time.Duration(len(m.slots))*slot + grace))
	block := make([]byte, blockBytes)
	for {
		n, err := c.Read(block)
		m.add(n)
		if err != nil {
			return
		}
	}
}

func (m *meter) add(n int) {
	if n <= 0 {
		return
	}
	now := int64(wall.Now().Sub(m.base)) + 1
	m.first.CompareAndSwap(0, now)
	if at := (now - m.first.Load()) / int64(slot); at >= 0 && at < int64(len(m.slots)) {
		m.slots[at].Add(int64(n))
	}
}

// total is what came in the time that counts.
func (m *meter) total() (r wire.Received) {
	from := len(m.slots) / startShare
	for i := from; i < len(m.slots); i++ {
		r.Bytes += m.slots[i].Load()
	}
	r.Seconds = (time.Duration(len(m.slots)-from) * slot).Seconds()
	return r
}

// sender sends over all connections of a direction.
type sender struct {
	end time.Time
	mu  sync.Mutex // guards sum
	sum wire.Sent
}

func newSender(long time.Duration) *sender { return &sender{end: wall.Now().Add(long + longer)} }

// send sends until the time is over. What is under way then is thrown away: over a path that
// carries little, a full buffer would hold up the other direction.
func (s *sender) send(ctx context.Context, c *net.TCPConn) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_ = c.SetWriteDeadline(s.end)
	block := make([]byte, blockBytes)
	for {
		if _, err := c.Write(block); err != nil { // it is time, or the other end is gone
			break
		}
	}
	if info, ok := readInfo(c); ok {
		s.mu.Lock()
		s.sum.Segments += int64(info.Segs_out)
		s.sum.Again += int64(info.Total_retrans)
		s.mu.Unlock()
	}
	_ = c.SetLinger(0)
}

func (s *sender) total() wire.Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum
}

// readInfo asks the kernel what it counted of a connection.
func readInfo(c *net.TCPConn) (info *unix.TCPInfo, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, false
	}
	asked := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	return info, asked == nil && err == nil
}
