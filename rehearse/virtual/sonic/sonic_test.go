// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/remote"
)

// rig is a switch of two ports and a client that is logged in to it.
func rig(t *testing.T, password string) (*Switch, *remote.Client, error) {
	t.Helper()
	s := New(Config{Name: "net/leaf-1", SKU: "Virtual", MAC: "02:00:00:00:01:00", User: "admin", Password: "right", Seed: 1, Clock: clock.Wall{},
		Ports: []Port{{"Ethernet0", "etp1", 1, 8, 400_000}, {"Ethernet8", "etp2", 2, 8, 400_000}},
		Show:  map[string]func() string{"lldp table": func() string { return "table\n" }}})
	board := network.NewMemory()
	at := netip.MustParseAddr("10.0.0.9")
	ln, err := board.At(at).Listen(t.Context(), "tcp", "10.0.0.9:22")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(t.Context(), ln) }()
	c, err := remote.Dial(t.Context(), remote.Config{Node: "net/leaf-1", Switch: true, Addr: netip.AddrPortFrom(at, 22), User: "admin", Password: secret.NewValue(password),
		Trust: func(ssh.PublicKey) error { return nil }, Network: board.At(netip.MustParseAddr("10.0.0.1"))})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return s, c, err
}

// run runs a command and returns its status and what it said.
func run(t *testing.T, c *remote.Client, stdin string, argv ...string) (int, string) {
	t.Helper()
	r, err := c.Run(t.Context(), remote.Command{Argv: argv, Stdin: strings.NewReader(stdin)})
	if err != nil {
		t.Fatal(argv, err)
	}
	return r.Exit, string(r.Stdout) + string(r.Stderr)
}

// TestCommands: a switch is read, patched, taken back and saved, and refuses what
// SONiC refuses, in its words.
func TestCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, err := rig(t, "right")
		if err != nil {
			t.Fatal(err)
		}
		patch := func(ops string) { run(t, c, ops, "tee", "/tmp/p.json") }
		for _, x := range []struct {
			name, patch string
			argv        []string
			exit        int
			says        string
		}{
			{"no root", "", []string{"config", "save", "-y"}, 1, "Root privileges are required"},
			{"no such command", "", []string{"reboot"}, 127, "command not found"},
			{"read", "", []string{"sudo", "-n", "sonic-cfggen", "-d", "--print-data"}, 0, `"hostname": "sonic"`},
			{"show", "", []string{"show", "runningconfiguration", "all"}, 0, `"alias": "etp2"`},
			{"lldp", "", []string{"show", "lldp", "table"}, 0, "table\n"},
			{"checkpoint", "", []string{"sudo", "config", "checkpoint", "a"}, 0, "Checkpoint created successfully."},
			{"no port", `[{"op":"add","path":"/PORT_QOS_MAP","value":{"Ethernet16":{"pfc_enable":"3"}}}]`, []string{"sudo", "config", "apply-patch", "-d", "/tmp/p.json"}, 2, `of value "Ethernet16" points to a non-existing leaf`},
			{"no map", `[{"op":"add","path":"/PORT_QOS_MAP","value":{"Ethernet0":{"dscp_to_tc_map":"X"}}}]`, []string{"sudo", "config", "apply-patch", "/tmp/p.json"}, 2, "Failed to apply patch"},
			{"MTU", `[{"op":"replace","path":"/PORT/Ethernet0/mtu","value":"99999"}]`, []string{"sudo", "config", "apply-patch", "/tmp/p.json"}, 2, `"68..9216"`},
			{"a status that is a boolean", `[{"op":"add","path":"/BGP_GLOBALS","value":{"default":{"local_asn":"65001"}}},{"op":"add","path":"/BGP_NEIGHBOR","value":{"default|10.0.0.1":{"asn":"65002","admin_status":"true"}}}]`,
				[]string{"sudo", "config", "apply-patch", "-n", "/tmp/p.json"}, 2, `Invalid enumeration value "true"`},
			{"nothing to replace", `[{"op":"replace","path":"/PORT/Ethernet0/x","value":"1"}]`, []string{"sudo", "config", "apply-patch", "/tmp/p.json"}, 2, "can't replace a non-existent object 'x'"},
			{"no table", `[{"op":"add","path":"/X/a","value":{}}]`, []string{"sudo", "config", "apply-patch", "/tmp/p.json"}, 2, "member 'X' not found"},
			{"empty table", `[{"op":"remove","path":"/CRM/Config"}]`, []string{"sudo", "config", "apply-patch", "/tmp/p.json"}, 2, "empty tables"},
			{"dry run", `[{"op":"replace","path":"/PORT/Ethernet0/mtu","value":"9216"}]`, []string{"sudo", "config", "apply-patch", "-n", "-d", "/tmp/p.json"}, 0, "Patch applied successfully."},
		} {
			patch(x.patch)
			if exit, said := run(t, c, "", x.argv...); exit != x.exit || !strings.Contains(said, x.says) {
				t.Errorf("%s: status %d: %s", x.name, exit, said)
			}
		}
		if got := s.Field("PORT", "Ethernet0", "mtu"); got != "9100" {
			t.Errorf("after a dry run: MTU %s", got)
		}
		patch(`[{"op":"replace","path":"/PORT/Ethernet0/mtu","value":"9216"}]`)
		run(t, c, "", "sudo", "config", "apply-patch", "-n", "/tmp/p.json")
		if got := s.Field("PORT", "Ethernet0", "mtu"); got != "9216" {
			t.Errorf("after the patch: MTU %s", got)
		}
		if _, saved := run(t, c, "", "sudo", "cat", startupFile); strings.Contains(saved, "9216") {
			t.Error("saved before anybody asked")
		}
		run(t, c, "", "sudo", "config", "save", "-y")
		if _, saved := run(t, c, "", "sudo", "cat", startupFile); !strings.Contains(saved, "9216") || !json.Valid([]byte(saved)) {
			t.Errorf("saved: %s", saved)
		}
		if exit, said := run(t, c, "", "sudo", "config", "rollback", "a"); exit != 0 || s.Field("PORT", "Ethernet0", "mtu") != "9100" {
			t.Errorf("rollback: %d %s", exit, said)
		}
		if exit, said := run(t, c, "", "sudo", "config", "rollback", "b"); exit != 2 || !strings.Contains(said, "does not exist") {
			t.Errorf("rollback to nothing: %d %s", exit, said)
		}
	})
}

// TestStickPause: what a second program writes is there after every patch, and the
// patch says that it did not take.
func TestStickPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, err := rig(t, "right")
		if err != nil {
			t.Fatal(err)
		}
		if s.StickPause("Ethernet99", 5) || !s.StickPause("Ethernet8", 5) {
			t.Fatal("ports")
		}
		run(t, c, `[{"op":"add","path":"/PORT_QOS_MAP","value":{"Ethernet0":{"pfc_enable":"3"},"Ethernet8":{"pfc_enable":"3"}}}]`, "tee", "/tmp/p.json")
		exit, said := run(t, c, "", "sudo", "config", "apply-patch", "/tmp/p.json")
		if a, b := s.Field("PORT_QOS_MAP", "Ethernet0", "pfc_enable"), s.Field("PORT_QOS_MAP", "Ethernet8", "pfc_enable"); exit != 2 || a != "3" || b != "3,5" || !strings.Contains(said, "still some parts not updated") {
			t.Errorf("status %d, %s, %s: %s", exit, a, b, said)
		}
	})
}

// TestLogin: another password is refused, and says so without it.
func TestLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, _, err := rig(t, "other-word"); errkind.Of(err) != errkind.Auth || strings.Contains(fmt.Sprint(err), "other-word") || !strings.HasPrefix(err.Error(), "switch net/leaf-1: ssh ") {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
	})
}
