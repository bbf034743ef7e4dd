// SPDX-License-Identifier: Apache-2.0

// Package etcdtest runs three real etcd members on loopback for tests, with mutual TLS
// between all of them and their clients. A test can kill, stop and isolate a member,
// cut all clients off, and give the members little room.
package etcdtest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
)

// Members is how many members a cluster has: one of them may be lost.
const Members = 3

// Ports of every member; those that others are given are of the links before them.
const (
	clientPort, peerPort         = 2379, 2380
	ownClientPort, ownPeerPort   = 12379, 12380
	startTimeout, requestTimeout = 3 * time.Minute, 2 * time.Second
)

// Cluster is three members. Its methods are for the goroutine of the test.
type Cluster struct {
	// CA, Cert and Key are files: the authority of the members' certificates, and the
	// certificate of a client that they accept.
	CA, Cert, Key string

	t         testing.TB
	dir       string
	args      []string
	authority authority
	members   [Members]*member
}

type member struct {
	addr    netip.Addr
	clients *link // what clients connect to
	peers   *link // what the other members connect to
	cmd     *exec.Cmd
	ended   chan struct{}
}

// running bounds the clusters of a process: a dozen at once on two cores find no leader.
var running = make(chan struct{}, 3)

// Start runs a cluster until the test ends, and returns once every member answers.
// args go to each member, such as --quota-backend-bytes=16777216.
func Start(t testing.TB, args ...string) *Cluster {
	t.Helper()
	peertest.Need(t, "etcd")
	running <- struct{}{}
	t.Cleanup(func() { <-running })
	c := &Cluster{t: t, dir: t.TempDir(), args: args}
	c.CA = c.path("ca.crt")
	c.authority = c.newAuthority("etcd of a test", c.CA)
	c.run()
	return c
}

// Another runs a second cluster, of members with the same authority.
func (c *Cluster) Another(t testing.TB) *Cluster {
	t.Helper()
	other := &Cluster{t: t, dir: t.TempDir(), args: c.args, CA: c.CA, authority: c.authority}
	other.run()
	return other
}

func (c *Cluster) run() {
	t := c.t
	t.Helper()
	block := make([]byte, 2)
	_, _ = rand.Read(block)
	var addrs []netip.Addr
	for i := range c.members { // other tests have other addresses of loopback
		addrs = append(addrs, netip.AddrFrom4([4]byte{127, 64 + block[0]%128, block[1], byte(11 + i)}))
	}
	c.writeCertificates(addrs)
	t.Cleanup(c.end)
	for i := range c.members {
		m := &member{addr: addrs[i]}
		c.members[i] = m
		m.clients = openLink(t, netip.AddrPortFrom(m.addr, clientPort), netip.AddrPortFrom(m.addr, ownClientPort))
		m.peers = openLink(t, netip.AddrPortFrom(m.addr, peerPort), netip.AddrPortFrom(m.addr, ownPeerPort))
	}
	for i := range c.members {
		c.start(i)
	}
	for i := range c.members {
		c.Await(i)
	}
}

// Endpoints are the URLs of the members for clients.
func (c *Cluster) Endpoints() []string {
	var out []string
	for _, m := range c.members {
		out = append(out, "https://"+netip.AddrPortFrom(m.addr, clientPort).String())
	}
	return out
}

func name(i int) string { return "m" + strconv.Itoa(i+1) }

// start runs a member, which continues with what its folder has.
func (c *Cluster) start(i int) {
	c.t.Helper()
	m := c.members[i]
	url := func(port uint16) string { return "https://" + netip.AddrPortFrom(m.addr, port).String() }
	var all []string
	for j, other := range c.members {
		all = append(all, name(j)+"=https://"+netip.AddrPortFrom(other.addr, peerPort).String())
	}
	args := append([]string{"--name", name(i), "--data-dir", filepath.Join(c.dir, name(i)),
		"--listen-client-urls", url(ownClientPort), "--advertise-client-urls", url(clientPort),
		"--listen-peer-urls", url(ownPeerPort), "--initial-advertise-peer-urls", url(peerPort),
		"--initial-cluster", strings.Join(all, ","), "--initial-cluster-state", "new",
		"--client-cert-auth", "--trusted-ca-file", c.CA, "--cert-file", c.path("member.crt"), "--key-file", c.path("member.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file", c.CA, "--peer-cert-file", c.path("member.crt"), "--peer-key-file", c.path("member.key"),
		"--logger", "zap", "--log-level", "warn"}, c.args...)
	log, err := os.OpenFile(c.path(name(i)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command("etcd", args...) //nolint:noctx // end stops it
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended, cmd := make(chan struct{}), m.cmd
	m.ended = ended
	go func() { _ = cmd.Wait(); close(ended) }()
}

// Await waits until a member answers that it has a leader and room.
func (c *Cluster) Await(i int) {
	c.t.Helper()
	for end := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		health, err := c.health(i)
		if err == nil && strings.Contains(health, `"true"`) {
			return
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(c.path(name(i) + ".log"))
			c.t.Fatalf("etcd member %s does not become healthy: %q, %v\n%s", name(i), health, err, log[max(0, len(log)-3000):])
		}
	}
}

// health asks a member how it is, past the link that a test may have cut.
func (c *Cluster) health(i int) (string, error) {
	trust, err := c.tlsConfig()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+netip.AddrPortFrom(c.members[i].addr, ownClientPort).String()+"/health", nil)
	if err != nil {
		return "", err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	return string(b), err
}

// Kill ends a member as a power cut of its machine does.
func (c *Cluster) Kill(i int) {
	c.t.Helper()
	c.signal(i, syscall.SIGKILL)
	<-c.members[i].ended
}

// Restart starts a member that was killed, and waits until it answers.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.start(i)
	c.Await(i)
}

// Stop halts a member: its connections stay, and nothing is answered on them.
func (c *Cluster) Stop(i int) { c.t.Helper(); c.signal(i, syscall.SIGSTOP) }

// Continue lets a stopped member run again.
func (c *Cluster) Continue(i int) { c.t.Helper(); c.signal(i, syscall.SIGCONT) }

func (c *Cluster) signal(i int, s syscall.Signal) {
	c.t.Helper()
	if err := c.members[i].cmd.Process.Signal(s); err != nil {
		c.t.Fatalf("signal %v to etcd member %s: %v", s, name(i), err)
	}
}

// Isolate cuts a member off from the other members, in both directions. Its clients
// still reach it.
func (c *Cluster) Isolate(i int) { c.isolate(i, true) }

// Rejoin ends what Isolate did.
func (c *Cluster) Rejoin(i int) { c.isolate(i, false) }

func (c *Cluster) isolate(i int, is bool) {
	pid := c.members[i].cmd.Process.Pid
	for j, m := range c.members {
		if j == i {
			m.peers.cut(is)
		} else {
			m.peers.refuse(pid, is)
		}
	}
}

// CutClients cuts clients off from a member, and ends their connections; the members
// reach each other. With is false clients can connect again.
func (c *Cluster) CutClients(i int, is bool) { c.members[i].clients.cut(is) }

// Route is the network between one controller and all members.
type Route struct {
	Endpoints []string // for that controller only
	links     []*link
}

// Route makes another way to the members, which lasts until the test ends.
func (c *Cluster) Route(t testing.TB) *Route {
	t.Helper()
	r := &Route{}
	for _, m := range c.members {
		l := openLink(t, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0), netip.AddrPortFrom(m.addr, ownClientPort))
		r.links = append(r.links, l)
		r.Endpoints = append(r.Endpoints, "https://"+l.at)
	}
	return r
}

// Cut ends all connections and lets none be made, or lets them be made again.
func (r *Route) Cut(is bool) {
	for _, l := range r.links {
		l.cut(is)
	}
}

// Mute loses all that the members answer, while they still get what they are asked.
func (r *Route) Mute(is bool) {
	for _, l := range r.links {
		l.mute(is)
	}
}

// end stops all members, whatever became of them.
func (c *Cluster) end() {
	for _, m := range c.members {
		if m == nil || m.cmd == nil || m.cmd.Process == nil {
			continue
		}
		_ = m.cmd.Process.Kill()
		<-m.ended
	}
}

func (c *Cluster) path(file string) string { return filepath.Join(c.dir, file) }

// tlsConfig is that of a client which the members accept.
func (c *Cluster) tlsConfig() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	pool, err := poolOf(c.CA)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// openLink listens until the test ends.
func openLink(t testing.TB, at, to netip.AddrPort) *link {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at.String())
	if err != nil {
		t.Fatal(fmt.Errorf("link to etcd: %w", err))
	}
	k := &link{at: l.Addr().String(), to: to, refused: map[int]bool{}, open: map[net.Conn]netip.AddrPort{}}
	done := make(chan struct{})
	go func() { defer close(done); k.serve(l) }()
	t.Cleanup(func() { _ = l.Close(); k.cut(true); <-done })
	return k
}
