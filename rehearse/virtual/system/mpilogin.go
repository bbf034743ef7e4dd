// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// login is what the launcher's SSH has to show and to go by.
type login struct {
	key   ssh.PublicKey
	known map[string][]string // the keys of each known host
}

// login reads the files that the launcher's agent names, once for all members.
func (j job) login() login {
	file := func(after string) []byte {
		for i, w := range j.agent {
			if name, ok := strings.CutPrefix(w, after); ok && name != "" {
				b, _ := j.n.tree.ReadFile(relativeName(name)) // absent: no key, no host
				return b
			} else if ok && i+1 < len(j.agent) {
				b, _ := j.n.tree.ReadFile(relativeName(j.agent[i+1]))
				return b
			}
		}
		return nil
	}
	with := login{known: map[string][]string{}}
	if key, err := ssh.ParsePrivateKey(file("-i")); err == nil {
		with.key = key.PublicKey()
	}
	for line := range strings.Lines(string(file("UserKnownHostsFile="))) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		with.known[name] = append(with.known[name], rest)
	}
	return with
}

// pins reports whether the known hosts have that key for that address.
func (l login) pins(a netip.Addr, key ssh.PublicKey) bool {
	return slices.ContainsFunc(l.known[a.String()], func(line string) bool {
		k, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		return err == nil && bytes.Equal(k.Marshal(), key.Marshal())
	})
}

// reach tries one member.
func (j job) reach(ctx context.Context, a netip.Addr, with login) (*node, string) {
	at := netip.AddrPortFrom(a, sshPort).String()
	try, cancel := context.WithTimeout(ctx, 15*time.Second) // ConnectTimeout
	defer cancel()
	c, err := j.n.cfg.Net.Dial(try, "tcp", at)
	if err != nil {
		return nil, fmt.Sprintf("ssh: connect to host %s port %d: %s\n", a, sshPort, dialWords(err))
	}
	_ = c.Close()
	n := j.n.cfg.Site.at(a)
	if n == nil {
		return nil, fmt.Sprintf("kex_exchange_identification: Connection closed by remote host\nConnection closed by %s port %d\n", a, sshPort)
	}
	host, err := n.hostKey()
	if err != nil || !with.pins(a, host.PublicKey()) {
		return nil, "Host key verification failed.\n"
	}
	from := net.TCPAddrFromAddrPort(netip.AddrPortFrom(j.n.cfg.Address, 40000))
	if with.key == nil || !n.authorized(with.key, from) {
		return nil, fmt.Sprintf("root@%s: Permission denied (publickey).\n", a)
	}
	return n, ""
}

// dialWords is strerror for a failed connection.
func dialWords(err error) string {
	var oe *net.OpError
	if errors.As(err, &oe) && oe.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "Connection timed out"
	}
	words := err.Error()
	if i := strings.LastIndex(words, ": "); i >= 0 {
		words = words[i+2:]
	}
	return capitalize(words)
}
