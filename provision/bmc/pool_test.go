// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bougou/go-ipmi/pkg/bmc"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
)

// pool returns a pool that the test closes.
func pool(t testing.TB, o Options) *Pool {
	t.Helper()
	p := NewPool(o)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// A BMC that dies between two requests and comes back costs no error to a
// question, and a command is carried out once.
func TestPeerPoolReconnect(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	h := pool(t, Options{}).Handle(s.target())
	if state, err := h.PowerState(t.Context()); err != nil || state != PowerOff {
		t.Fatalf("first: %s, %v", state, err)
	}
	s.Kill()
	if _, err := h.PowerState(t.Context()); errkind.Of(err) != errkind.Unreachable {
		t.Errorf("while it is dead: %v", err)
	}
	s.Run()
	if out, err := h.SetPower(t.Context(), On); err != nil || out.Verdict != Verified {
		t.Errorf("after it came back: %+v, %v", out, err)
	}
	s.Kill()
	s.Run() // it has forgotten our session and says nothing about it
	if out, err := h.SetPower(t.Context(), Cycle); err != nil || out.Verdict != Verified || out.Sent != 2 {
		t.Errorf("after a restart that nobody noticed: %+v, %v", out, err)
	}
	if got := s.Did(); got != "power 1, power 0, power 1" {
		t.Errorf("the bmc carried out %q", got)
	}
}

// A BMC that dies right after a command was sent: the error says that nobody
// knows, and Sent says that there is something to look at.
func TestPeerPoolDiesDuringCommand(t *testing.T) {
	t.Parallel()
	s := startSim(t)
	s.Put("slow", "60") // it is dead long before it could answer
	h := pool(t, Options{Clock: newSkipClock()}).Handle(s.target())
	if _, err := h.PowerState(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for s.Did() == "" && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		s.Kill()
	})
	out, err := h.SetPower(t.Context(), On)
	wg.Wait()
	if k := errkind.Of(err); err == nil || k != errkind.Unreachable && k != errkind.Timeout || out.Sent != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
}

// A refused credential reaches the BMC once, however often it is used.
func TestPoolAuthGuard(t *testing.T) {
	t.Parallel()
	target, _, conn := startBMC(t, bmc.DeviceInfo{})
	wrong := target
	wrong.Password = secret.NewValue("wrong-" + simPassword[:8])
	p := pool(t, Options{})
	for i := range 5 {
		_, err := p.Handle(wrong).PowerState(t.Context())
		if errkind.Of(err) != errkind.Auth || errkind.Action(err) == "" {
			t.Fatalf("try %d: %v", i, err)
		}
		noCanary(t, err)
	}
	if got := conn.count(); got != 2 { // Open Session Request and RAKP Message 1
		t.Errorf("%d datagrams reached the bmc, want those of one log-in", got)
	}
	if _, err := p.Handle(target).PowerState(t.Context()); err != nil {
		t.Errorf("the right credential: %v", err)
	}
	count := conn.count()
	p.Forget(target.Addr)
	if _, err := p.Handle(wrong).PowerState(t.Context()); errkind.Of(err) != errkind.Auth {
		t.Errorf("after Forget: %v", err)
	}
	if conn.count() == count {
		t.Error("after Forget the credential was not tried")
	}
}

// One session serves many callers, one at a time.
func TestPoolSerialises(t *testing.T) {
	t.Parallel()
	target, _, conn := startBMC(t, bmc.DeviceInfo{})
	p := pool(t, Options{})
	var inside, most atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			err := p.Handle(target).Do(t.Context(), func(s *Session) error {
				most.Store(max(most.Load(), inside.Add(1)))
				defer inside.Add(-1)
				_, err := s.PowerState(t.Context())
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d callers at a time", most.Load())
	}
	if got := conn.count(); got != 4+20 { // four messages open a session
		t.Errorf("%d datagrams, want one session and 20 questions", got)
	}
}

func TestPoolGap(t *testing.T) {
	t.Parallel()
	target, _, _ := startBMC(t, bmc.DeviceInfo{})
	clk := newSkipClock()
	h := pool(t, Options{Clock: clk, Gap: 50 * time.Millisecond}).Handle(target)
	for range 10 {
		if _, err := h.PowerState(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if clk.ahead < 13*50*time.Millisecond { // 14 datagrams, 13 gaps
		t.Errorf("waited %s in all", clk.ahead)
	}
}

func TestPoolKeepAlive(t *testing.T) {
	t.Parallel()
	target, _, conn := startBMC(t, bmc.DeviceInfo{})
	clk := newSkipClock()
	p := pool(t, Options{Clock: clk})
	if _, err := p.Handle(target).PowerState(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := p.entries[target.Addr]
	before := conn.count()
	_ = clk.Sleep(t.Context(), keepAliveEvery)
	p.refresh(t.Context(), e, false)
	if conn.count() != before+1 || e.session == nil {
		t.Errorf("an idle session was not asked: %d datagrams", conn.count()-before)
	}
	_ = clk.Sleep(t.Context(), idleLimit)
	p.refresh(t.Context(), e, false)
	if e.session != nil {
		t.Error("a session that nobody uses was kept")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.KeepAlive(ctx); err != nil {
		t.Errorf("KeepAlive on a done context: %v", err)
	}
}

// Where there are many sessions, one that must be asked to last is given back early, and
// one that lasts by itself is kept: a new one costs more than it does.
func TestPoolCrowded(t *testing.T) {
	t.Parallel()
	for expires, kept := range map[bool]bool{true: false, false: true} {
		clk := newSkipClock()
		p := NewPool(Options{Clock: clk})
		d := &idleDriver{expires: expires}
		e := &entry{used: clk.Now()}
		e.keep(&Session{drv: d, clk: clk})
		_ = clk.Sleep(t.Context(), crowdedLimit)
		p.refresh(t.Context(), e, true)
		if (e.session != nil) != kept || d.asked != 0 {
			t.Errorf("expires %v: kept %v, and asked %d times", expires, e.session != nil, d.asked)
		}
		_ = clk.Sleep(t.Context(), idleLimit)
		p.refresh(t.Context(), e, true)
		if e.session != nil || d.closed != 1 {
			t.Errorf("expires %v: it was closed %d times after %s", expires, d.closed, idleLimit)
		}
	}
}

// idleDriver is a session that nobody uses.
type idleDriver struct {
	driver
	expires       bool // without a question
	asked, closed int
}

func (d *idleDriver) pinged(time.Time) bool       { return d.expires }
func (d *idleDriver) ping(context.Context) error  { d.asked++; return nil }
func (d *idleDriver) Close(context.Context) error { d.closed++; return nil }

func TestPoolClose(t *testing.T) {
	t.Parallel()
	target, _, _ := startBMC(t, bmc.DeviceInfo{})
	p := NewPool(Options{})
	h := p.Handle(target)
	if _, err := h.PowerState(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	release := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = h.Do(t.Context(), func(*Session) error { close(held); <-release; return nil })
	})
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close with a request under way: %v", err)
	}
	close(release)
	wg.Wait()
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := h.PowerState(t.Context()); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("after Close: %v", err)
	}
}

// Waiting for a BMC that somebody else holds ends with the context.
func TestPoolWait(t *testing.T) {
	t.Parallel()
	target, _, _ := startBMC(t, bmc.DeviceInfo{})
	h := pool(t, Options{}).Handle(target)
	err := h.Do(t.Context(), func(*Session) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := h.PowerState(ctx)
		return err
	})
	if errkind.Of(err) != errkind.Timeout || !strings.Contains(err.Error(), "wait for the bmc") {
		t.Errorf("got %v", err)
	}
}

// A forger who sees and answers every datagram first changes nothing and breaks
// nothing.
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	target, _, _ := startBMC(t, bmc.DeviceInfo{})
	session := open(t, target)
	good, err := session.PowerState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A relay between the session and the BMC that puts forged answers first.
	session.drv.(*ipmiDriver).conn.Conn = &forger{Conn: session.drv.(*ipmiDriver).conn.Conn}
	for range 8 {
		state, err := session.PowerState(t.Context())
		if err != nil || state != good {
			t.Fatalf("got %s, %v", state, err)
		}
	}
	if n := session.drv.(*ipmiDriver).conn.drops(); n < 8 {
		t.Errorf("%d forged datagrams dropped", n)
	}
}

// A BMC, or somebody in its place, that answers "no authentication, no
// encryption" gets no session.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	target := Target{Node: "n1", Addr: freeUDP(t), Username: simUser, Password: secret.NewValue(simPassword), Timeout: 3 * time.Second}
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(target.Addr))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = conn.Close(); wg.Wait() })
	wg.Go(func() {
		b := make([]byte, maxDatagram)
		for {
			n, from, err := conn.ReadFromUDP(b)
			if err != nil {
				return
			}
			req, _ := sessionPayload(b[:n])
			payload := make([]byte, 36) // status 0, all three algorithms 0: none
			copy(payload[4:8], req[4:8])
			payload[15], payload[20], payload[23], payload[28], payload[31] = 8, 1, 8, 2, 8
			header := []byte{6, 0, 0xff, 7, 6, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(payload)), 0}
			_, _ = conn.WriteToUDP(append(header, payload...), from)
		}
	})
	_, err = Open(t.Context(), target, Options{})
	if errkind.Of(err) != errkind.Timeout || !strings.Contains(err.Error(), "dropped") {
		t.Errorf("got %v", err)
	}
	noCanary(t, err)
}

// forger delivers a damaged copy of each datagram before the datagram itself.
type forger struct {
	net.Conn
	held []byte
	n    int
}

func (f *forger) Read(b []byte) (int, error) {
	if f.held != nil {
		n := copy(b, f.held)
		f.held = nil
		return n, nil
	}
	n, err := f.Conn.Read(b)
	if err != nil {
		return n, err
	}
	f.held = append([]byte(nil), b[:n]...)
	f.n++
	switch f.n % 4 {
	case 0:
		b[n-1] ^= 1 // integrity code
	case 1:
		b[rmcpHeader+1] &^= 0xc0 // "not encrypted, not authenticated"
	case 2:
		b[payloadStart+20] ^= 0xff // ciphertext
	case 3:
		n -= 7 // cut off
	}
	return n, nil
}
