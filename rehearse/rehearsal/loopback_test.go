// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stmcginnis/gofish"
	rf "github.com/stmcginnis/gofish/redfish"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// pair makes a site of the demo's two racks with one node each, its BMCs changed
// as the pairs of old and new texts say.
func pair(t *testing.T, changes ...string) string {
	t.Helper()
	dir := t.TempDir()
	site, err := os.ReadFile(filepath.Join(demo, "site.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile(filepath.Join(demo, "manifest.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(shipped)))
	files := map[string]string{"site.hcl": strings.NewReplacer(changes...).Replace(string(site)), "manifest.csv": lines[0] + lines[1] + lines[5]}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lingering rehearses a site on real sockets, and lets tools of others look at the
// virtual rack while it lingers.
func lingering(t *testing.T, dir string, judge func(t *testing.T, doors []virtual.Endpoint)) {
	if testing.Short() {
		t.Skip("on wall time")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stop atomic.Bool
	doors, sums, ended := make(chan []virtual.Endpoint, 1), make(chan rehearsal.Summary, 1), make(chan error, 1)
	inv := load(t, dir, nil)
	go func() {
		_, err := rehearsal.Run(ctx, inv, rehearsal.Options{Seed: 1, Loopback: true, Speed: 600, Linger: true, Interrupted: stop.Load,
			OnReady: func(all []virtual.Endpoint) { doors <- all }, OnLinger: func(s rehearsal.Summary) { sums <- s }})
		ended <- err
	}()
	select {
	case sum := <-sums:
		if len(sum.Accepted) != 2 || sum.WallTime == 0 || sum.PeakMemory == 0 {
			t.Errorf("%+v", sum)
		}
	case err := <-ended:
		t.Fatalf("it does not linger: %v", err)
	}
	all := <-doors
	for _, d := range all {
		if !d.Real.Addr().IsLoopback() || d.Real.Port() < 1024 || !d.Site.Addr().IsPrivate() || d.Password == "" {
			t.Errorf("%+v", d)
		}
	}
	judge(t, all)
	stop.Store(true)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", all[0].Real.String()); err == nil {
		c.Close()
		t.Errorf("%s answers after the end", all[0].Real)
	}
}

// door finds the first door of a protocol.
func door(t *testing.T, doors []virtual.Endpoint, protocol string) virtual.Endpoint {
	t.Helper()
	i := slices.IndexFunc(doors, func(d virtual.Endpoint) bool { return d.Protocol == protocol })
	if i < 0 {
		t.Fatalf("no %s in %+v", protocol, doors)
	}
	return doors[i]
}

// TestPeerLoopbackRedfish lets gofish, sushy and net-snmp look at a virtual rack whose
// nodes were accepted: they run, and can be switched off.
func TestPeerLoopbackRedfish(t *testing.T) {
	t.Parallel()
	lingering(t, pair(t), func(t *testing.T, doors []virtual.Endpoint) {
		d := door(t, doors, "redfish")
		t.Run("gofish", func(t *testing.T) { gofishJudges(t, d) })
		t.Run("sushy", func(t *testing.T) { sushyJudges(t, d) })
		t.Run("snmpget", func(t *testing.T) {
			p := door(t, doors, "snmp")
			if out := tool(t, nil, "snmpget", "-v2c", "-c", p.Password, p.Real.String(), "1.3.6.1.2.1.1.1.0"); !strings.Contains(out, "APC") {
				t.Error(out)
			}
		})
	})
}

// gofishJudges reads a node and switches it off.
func gofishJudges(t *testing.T, d virtual.Endpoint) {
	where := gofish.ClientConfig{Endpoint: "https://" + d.Real.String(), Username: d.User, Password: d.Password + "x", Insecure: true}
	if c, err := gofish.Connect(where); err == nil {
		c.Logout()
		t.Error("a wrong password is taken")
	}
	where.Password = d.Password
	c, err := gofish.Connect(where)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Logout()
	systems, err := c.Service.Systems()
	if err != nil || len(systems) != 1 {
		t.Fatalf("%d systems: %v", len(systems), err)
	}
	if s := systems[0]; s.SerialNumber != "S41201001" || s.PowerState != rf.OnPowerState {
		t.Errorf("serial %s, power %s", s.SerialNumber, s.PowerState)
	}
	if err := systems[0].Reset(rf.ForceOffResetType); err != nil {
		t.Fatal(err)
	}
	until(t, "off", func() string {
		again, err := c.Service.Systems()
		if err != nil {
			return err.Error()
		}
		return strings.ToLower(string(again[0].PowerState))
	})
}

// sushyJudges switches the node on again with OpenStack's client.
func sushyJudges(t *testing.T, d virtual.Endpoint) {
	const script = `
import sys, time, warnings
import sushy
warnings.simplefilter("ignore")
url, user, password = sys.argv[1:]
root = sushy.Sushy(url, auth=sushy.auth.SessionOrBasicAuth(user, password), verify=False)
system = root.get_system_collection().get_members()[0]
assert system.power_state == sushy.POWER_STATE_OFF, system.power_state
system.reset_system(sushy.RESET_ON)
end = time.time() + 20
while system.power_state != sushy.POWER_STATE_ON:
    assert time.time() < end, system.power_state
    time.sleep(0.05)
    system.refresh()
`
	run(t, []string{"REQUESTS_CA_BUNDLE=", "CURL_CA_BUNDLE="}, peertest.Python(t, "sushy"), "-c", script, "https://"+d.Real.String(), d.User, d.Password)
}

// TestPeerLoopbackIPMI lets ipmitool look at nodes that were brought up over IPMI.
func TestPeerLoopbackIPMI(t *testing.T) {
	t.Parallel()
	dir := pair(t, `protocol = "redfish"`, `protocol = "ipmi"`, `tls      = "pin-first-seen"`, "")
	lingering(t, dir, func(t *testing.T, doors []virtual.Endpoint) {
		d := door(t, doors, "ipmi")
		ask := func(args ...string) string {
			// On a busy machine the BMC, under the race detector, is slower than ipmitool's
			// second for each of four tries.
			words := append([]string{"-I", "lanplus", "-N", "20", "-R", "6", "-H", d.Real.Addr().String(), "-p", fmt.Sprint(d.Real.Port()), "-U", d.User, "-E"}, args...)
			return tool(t, []string{"IPMI_PASSWORD=" + d.Password}, "ipmitool", words...)
		}
		if out := ask("chassis", "power", "status"); out != "Chassis Power is on\n" {
			t.Error(out)
		}
		if out := ask("fru", "print", "0"); !strings.Contains(out, "S41201001") {
			t.Error(out)
		}
		ask("chassis", "power", "off")
		until(t, "Chassis Power is off\n", func() string { return ask("chassis", "power", "status") })
	})
}

// TestLoopbackIsStopped stops a rehearsal on real sockets while nodes boot.
func TestLoopbackIsStopped(t *testing.T) {
	t.Parallel()
	_, err := rehearsal.Run(t.Context(), load(t, pair(t), nil), rehearsal.Options{Loopback: true, Speed: 100, Interrupted: func() bool { return true }})
	if errkind.Of(err) != errkind.Interrupted {
		t.Errorf("%v", err)
	}
}

// tool runs a program of others; its absence skips the test.
func tool(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	peertest.Need(t, name)
	return run(t, env, name, args...)
}

func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// until asks until the answer is the one that is wanted; the bound only ends a test
// that hangs.
func until(t *testing.T, want string, ask func() string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		if got = ask(); got == want {
			return
		}
	}
	t.Errorf("it stays %q, not %q", got, want)
}
