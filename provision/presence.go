package provision

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/subject"
)

// How nodes that the state does not know are looked at while planning.
const (
	presenceWait     = 1500 * time.Millisecond // for one node to answer
	presenceParallel = 512
)

// presence looks whether nodes that the state knows nothing about are running:
// an empty state beside running nodes must never lead to an install. It asks no
// BMC, since a plan resolves no secret; apply does, before it powers anything.
func (s *Site) presence(ctx context.Context, prior plan.Prior) map[string]plan.Presence {
	found := map[string]plan.Presence{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, presenceParallel)
	for _, n := range s.Inv.Nodes {
		if n.Image == nil || !n.Address.IsValid() || touched(prior, n) {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if banner, ok := s.sshBanner(ctx, n.Address); ok {
				mu.Lock()
				defer mu.Unlock()
				found[n.Name] = plan.Presence{Running: true, Evidence: fmt.Sprintf("SSH answers at %s (%s)", n.Address, event.Escape(banner))}
			}
		})
	}
	wg.Wait()
	return found
}

// touched reports whether this state has ever done anything with a node.
func touched(prior plan.Prior, n *inventory.Node) bool {
	if prior.Nodes[n.Name].Known() {
		return true
	}
	_, ok := prior.Fact(install.AttemptFact.Of(subject.OfNode(n.Name)))
	return ok
}

// sshBanner reads what answers on the SSH port (RFC 4253, section 4.2).
func (s *Site) sshBanner(ctx context.Context, a netip.Addr) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	c, err := s.network.Dial(ctx, "tcp", netip.AddrPortFrom(a, sshPort).String())
	if err != nil {
		return "", false
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if c.SetReadDeadline(deadline) != nil {
		return "", false
	}
	line, err := bufio.NewReaderSize(c, 256).ReadSlice('\n')
	if err != nil || !strings.HasPrefix(string(line), "SSH-") {
		return "an unknown service", true
	}
	return strings.TrimSpace(string(line)), true
}
