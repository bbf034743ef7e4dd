// SPDX-License-Identifier: Apache-2.0

//go:build hostile

package provision

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
)

// hostileUnknown is how many unknown clients the boot network has: 10.99.200.1 and on.
const hostileUnknown = 8

func unknownAddr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 99, 200, byte(1 + i%hostileUnknown)})
}

// flood is one attack at a fixed rate. Each call of do is one attempt of it and may
// hold what it opened until ctx ends.
type flood struct {
	name string
	each time.Duration // between two attempts
	open int           // at most so many at a time
	do   func(a *attacker, ctx context.Context, i int)
}

// floods are the twelve attacks, slow readers counted once.
var floods = []flood{
	{"DISCOVERs of unknown MACs", time.Second / 500, 1, (*attacker).unknownMAC},
	{"half-open HTTP", time.Second / 50, 1000, (*attacker).halfOpen},
	{"slow readers, known address", time.Second / 20, 500, (*attacker).slowKnown},
	{"slow readers, unknown address", time.Second / 20, 500, (*attacker).slowUnknown},
	{"idle TLS connections", time.Second / 20, 500, (*attacker).idleTLS},
	{"refused TFTP reads", time.Second / 2000, 1, (*attacker).tftpRead},
	{"stolen token", time.Second / 10, 10, (*attacker).stolenToken},
	{"replayed hello", time.Second / 10, 10, (*attacker).replayedHello},
	{"forged results", time.Second / 5, 5, (*attacker).forgedResult},
	{"oversized headers", time.Second / 10, 10, (*attacker).oversized},
	{"endless bodies", time.Second / 2, 10, (*attacker).endlessBody},
	{"spoofed relays", time.Second / 200, 1, (*attacker).spoofedRelay},
	{"stolen address", time.Second / 5, 5, (*attacker).stolenAddress},
}

// attacker is what the attacks share.
type attacker struct {
	udp, tftp net.PacketConn
	own       string // token of node 101
	ownID     string
	mu        sync.Mutex // guards what follows
	token     string     // of another node
	tokenID   string
	node      int
	stolen    http.Client
}

func (a *attacker) dialer(from netip.Addr) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}, Timeout: 5 * time.Second}
}

func (a *attacker) dial(ctx context.Context, from netip.Addr, port string) (net.Conn, error) {
	return a.dialer(from).DialContext(ctx, "tcp4", net.JoinHostPort(hostileController().String(), port))
}

func (a *attacker) dhcp(mods ...dhcpv4.Modifier) {
	if p, err := dhcpv4.NewDiscovery(net.HardwareAddr{2, 0, 0, 0, 0, 1}, mods...); err == nil {
		_, _ = a.udp.WriteTo(p.ToBytes(), &net.UDPAddr{IP: hostileController().AsSlice(), Port: 67})
	}
}

func (a *attacker) unknownMAC(context.Context, int) {
	var m addr.MAC
	rand.Read(m[:])
	m[0] = m[0]&0xfc | 2
	a.dhcp(dhcpv4.WithHwAddr(m.HardwareAddr()))
}

// spoofedRelay asks for healthy nodes through a relay that nobody declared.
func (a *attacker) spoofedRelay(_ context.Context, i int) {
	a.dhcp(dhcpv4.WithHwAddr(hostileMAC(1+i%(hostileNodes-1)).HardwareAddr()), dhcpv4.WithRelay(unknownAddr(i).AsSlice()))
}

func (a *attacker) halfOpen(ctx context.Context, i int) {
	if c, err := a.dial(ctx, unknownAddr(i), "80"); err == nil {
		<-ctx.Done()
		c.Close()
	}
}

func (a *attacker) slow(ctx context.Context, from netip.Addr) {
	c, err := a.dial(ctx, from, "80")
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(c, "GET /boot/%s/vmlinuz HTTP/1.1\r\nHost: x\r\n\r\n", a.ownID)
	b := make([]byte, 1)
	for ctx.Err() == nil {
		if _, err := c.Read(b); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func (a *attacker) slowKnown(ctx context.Context, _ int)   { a.slow(ctx, hostileAddr(hostileKnown)) }
func (a *attacker) slowUnknown(ctx context.Context, i int) { a.slow(ctx, unknownAddr(i)) }

func (a *attacker) idleTLS(ctx context.Context, i int) {
	from := hostileAddr(hostileOther)
	if i%2 == 0 {
		from = unknownAddr(i)
	}
	c, err := a.dial(ctx, from, "8443")
	if err != nil {
		return
	}
	defer c.Close()
	if tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) == nil {
		<-ctx.Done()
	}
}

func (a *attacker) tftpRead(context.Context, int) {
	_, _ = a.tftp.WriteTo([]byte("\x00\x01nothing\x00octet\x00"), &net.UDPAddr{IP: hostileController().AsSlice(), Port: 69})
}

// api calls the agent API from an address.
func (a *attacker) api(ctx context.Context, from netip.Addr, path, token string, body io.Reader) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+hostileController().String()+":8443"+path, body)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+token)
	c := http.Client{Transport: &http.Transport{DialContext: a.dialer(from).DialContext, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if res, err := c.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

func (a *attacker) hello(ctx context.Context, from netip.Addr, bootID string) {
	a.mu.Lock()
	id, token := a.tokenID, a.token
	a.mu.Unlock()
	if token == "" {
		return // none is stolen yet
	}
	b, _ := json.Marshal(wire.Hello{Version: wire.Version, Attempt: id, BootID: bootID})
	a.api(ctx, from, wire.PathHello, token, bytes.NewReader(b))
}

func (a *attacker) stolenToken(ctx context.Context, i int) {
	from := hostileAddr(hostileKnown)
	if i%2 == 0 {
		from = unknownAddr(i)
	}
	a.hello(ctx, from, "another")
}

func (a *attacker) replayedHello(ctx context.Context, _ int) {
	a.mu.Lock()
	id := fmt.Sprintf("boot-%d", a.node)
	a.mu.Unlock()
	a.hello(ctx, hostileAddr(hostileKnown), id)
}

func (a *attacker) forgedResult(ctx context.Context, i int) {
	body := fmt.Sprintf(`{"key":"forged-%d","kind":"configure","output":%q}`, i, strings.Repeat("x", 1<<20))
	a.api(ctx, hostileAddr(hostileKnown), wire.PathResult, a.own, strings.NewReader(body))
}

func (a *attacker) oversized(ctx context.Context, i int) {
	c, err := a.dial(ctx, hostileAddr(hostileOther), "80")
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("x", 256<<10))
	_, _ = io.Copy(io.Discard, c)
}

// endless gives zeroes slowly, for as long as it is read.
type endless struct{ ctx context.Context }

func (e endless) Read(b []byte) (int, error) {
	select {
	case <-e.ctx.Done():
		return 0, io.EOF
	case <-time.After(10 * time.Millisecond):
	}
	return copy(b, bytes.Repeat([]byte(" "), 4096)), nil
}

func (a *attacker) endlessBody(ctx context.Context, _ int) {
	a.api(ctx, hostileAddr(hostileKnown), wire.PathResult, a.own, endless{ctx})
}

// stolenAddress answers for the address of node 100 and asks for its boot files.
func (a *attacker) stolenAddress(ctx context.Context, _ int) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	mac := strings.ReplaceAll(hostileMAC(hostileStolen).String(), ":", "-")
	script, err := get(ctx, &a.stolen, "/boot/"+mac+"/script.ipxe")
	if err != nil {
		return
	}
	for _, path := range bootPath.FindAllString(string(script), -1) {
		if b, err := get(ctx, &a.stolen, path); err == nil && bytes.Contains(b, []byte(hostileBootEnd)) {
			fmt.Printf("%sleak %s\n", hostileMark, path)
		}
	}
}

// TestHostileFloods is the process of TestHostile that attacks, on one core, until
// its input ends.
func TestHostileFloods(t *testing.T) {
	if os.Getenv("IRONRAIL_HOSTILE") != "floods" {
		t.Skip("runs as a process of TestHostile")
	}
	var one unix.CPUSet
	one.Set(0)
	if err := unix.SchedSetaffinity(os.Getpid(), &one); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	a := &attacker{}
	var err error
	if a.udp, err = net.ListenPacket("udp4", hostileAddr(hostileKnown).String()+":0"); err != nil {
		t.Fatal(err)
	}
	if a.tftp, err = net.ListenPacket("udp4", unknownAddr(0).String()+":0"); err != nil {
		t.Fatal(err)
	}
	a.stolen.Transport = &http.Transport{DialContext: a.dialer(hostileAddr(hostileStolen)).DialContext, DisableKeepAlives: true}
	var began sync.Once
	var wg sync.WaitGroup
	sent := make([]atomic.Int64, len(floods))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var i int
		var id, token string
		if k, _ := fmt.Sscanf(lines.Text(), "own %s %s", &id, &token); k == 2 {
			began.Do(func() {
				a.ownID, a.own = id, token
				for i, f := range floods {
					wg.Go(func() { f.run(ctx, a, &sent[i]) })
				}
			})
		}
		if k, _ := fmt.Sscanf(lines.Text(), "token %d %s %s", &i, &id, &token); k == 3 && i != hostileStolen {
			a.mu.Lock()
			a.node, a.tokenID, a.token = i, id, token
			a.mu.Unlock()
		}
	}
	cancel()
	wg.Wait()
	for i, f := range floods {
		fmt.Printf("%ssent %d %s\n", hostileMark, sent[i].Load(), f.name)
	}
}

// run makes attempts at the flood's rate; those for which there is no room are left
// out.
func (f flood) run(ctx context.Context, a *attacker, sent *atomic.Int64) {
	var wg sync.WaitGroup
	defer wg.Wait()
	room := make(chan struct{}, f.open)
	began := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		// A sleep is longer than a short interval: what is due is made up for, up to 100.
		due := min(int(time.Since(began)/f.each)-i, 100)
		if due <= 0 {
			time.Sleep(max(f.each, 5*time.Millisecond))
			i--
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			time.Sleep(f.each)
			continue
		}
		sent.Add(1)
		if f.open == 1 {
			f.do(a, ctx, i)
			<-room
			continue
		}
		wg.Go(func() {
			defer func() { <-room }()
			f.do(a, ctx, i)
		})
	}
}
