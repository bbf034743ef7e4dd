// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/ipmisim"
	"github.com/ironrail/ironrail/internal/secret"
)

// The credential of simulated BMCs. The password is a canary: no error, log or
// evidence may contain it.
const (
	simUser     = ipmisim.User
	simPassword = ipmisim.Password
)

// hangs is when a peer that makes no progress counts as hung: it judges nothing.
const hangs = 5 * time.Minute

// sim is one simulator with an operator beside the administrator.
type sim struct {
	*ipmisim.Sim
	t testing.TB
}

// startSim starts an ipmi_sim for the test, powered off.
func startSim(t testing.TB) *sim {
	t.Helper()
	return &sim{ipmisim.Start(t, "SYS-n1-0001", fmt.Sprintf("  user 3 true \"operator\" \"%s\" operator 10 none md2 md5 straight\n", simPassword)), t}
}

// target returns the BMC's target with a good credential.
func (s *sim) target() Target {
	return Target{
		Node: "n1", Addr: s.Addr, Username: simUser, Password: secret.NewValue(simPassword),
		CipherSuite: 3, Timeout: 3 * time.Second,
	}
}

// ipmitool asks the independent judge.
func (s *sim) ipmitool(args ...string) string {
	s.t.Helper()
	peertest.Need(s.t, "ipmitool")
	base := []string{"-I", "lanplus", "-C", "3", "-H", s.Addr.Addr().String(), "-p", fmt.Sprint(s.Addr.Port()), "-U", simUser, "-E"}
	cmd := exec.CommandContext(s.t.Context(), "ipmitool", append(base, args...)...)
	cmd.Env = append(os.Environ(), "IPMI_PASSWORD="+simPassword)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("ipmitool %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// simCount numbers the simulators of this process.
var simCount atomic.Uint32

// freeUDP returns a loopback address that nobody listens on: an address of its
// own, so that no client's ephemeral port can be in the way.
func freeUDP(testing.TB) netip.AddrPort {
	n := simCount.Add(1)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + os.Getpid()%250), byte(n >> 8), byte(n)}), 16230)
}
