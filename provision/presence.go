package provision

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// How nodes that the state does not know are looked at while planning.
const (
	presenceWait     = 1500 * time.Millisecond // for one node to answer
	presenceParallel = 512
)

// presence looks whether nodes that the state knows nothing about are running:
// an empty state beside running nodes must never lead to an install. The evidence is
// the banner of an SSH server: it is what a running system of any make sends first, our
// own host key included. That a connection is accepted is none: firewalls and proxies
// accept for addresses behind which nobody is. Such nodes are named in a warning. It
// asks no BMC, since a plan resolves no secret; apply does, before it powers anything.
func (s *Site) presence(ctx context.Context, prior plan.Prior) (found map[string]plan.Presence, warnings []string) {
	found = map[string]plan.Presence{}
	var mute []string // nodes at whose address something accepts and says nothing
	var mu sync.Mutex // guards found and mute
	var wg sync.WaitGroup
	slots := make(chan struct{}, presenceParallel)
	for _, n := range s.Inv.Nodes {
		if n.Image == nil || !n.Address.IsValid() || touched(prior, n) {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answer := s.probeSSH(ctx, n.Address)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case answer.banner != "":
				found[n.Name] = plan.Presence{Running: true, Evidence: fmt.Sprintf("SSH answers at %s (%s)", n.Address, event.Escape(answer.banner))}
			case answer.accepted:
				mute = append(mute, n.Name)
			}
		})
	}
	wg.Wait()
	if len(mute) > 0 {
		warnings = append(warnings, fmt.Sprintf("port %d accepts connections and sends no SSH banner within %s: %s. That is no evidence of a running node (a firewall or a proxy accepts like this); if one runs there, `ironrail hold NODE` keeps it from being installed",
			sshPort, presenceWait, fold.Nodes(mute)))
	}
	return found, warnings
}

// touched reports whether this state has ever done anything with a node.
func touched(prior plan.Prior, n *inventory.Node) bool {
	if prior.Nodes[n.Name].Known() {
		return true
	}
	_, ok := prior.Fact(install.AttemptFact.Of(subject.OfNode(n.Name)))
	return ok
}

// sshAnswer is what the SSH port of an address answers.
type sshAnswer struct {
	accepted bool   // the connection was accepted
	banner   string // the identification string, "SSH-2.0-OpenSSH_9.2p1"; "" for none
}

// maxBannerLines and maxBannerLine bound what a server may send before its banner.
const (
	maxBannerLines = 32
	maxBannerLine  = 1024
)

// probeSSH reads what the SSH port of an address sends first: the identification
// string, and other lines before it (RFC 4253, section 4.2). It takes at most
// presenceWait.
func (s *Site) probeSSH(ctx context.Context, a netip.Addr) (answer sshAnswer) {
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	c, err := s.network.Dial(ctx, "tcp", netip.AddrPortFrom(a, sshPort).String())
	if err != nil {
		return answer
	}
	defer c.Close()
	answer.accepted = true
	deadline, _ := ctx.Deadline()
	if c.SetReadDeadline(deadline) != nil {
		return answer
	}
	r := bufio.NewReaderSize(c, maxBannerLine)
	for range maxBannerLines {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return answer
		}
		if strings.HasPrefix(string(line), "SSH-") {
			answer.banner = strings.TrimSpace(string(line))
			return answer
		}
	}
	return answer
}
