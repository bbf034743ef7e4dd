// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/ipmisim"
)

// simulated makes the tiny site with simulated BMCs, one of each node. The serial number of n2 in
// the files is serial2; lan1 is more of the configuration of n1's simulator.
func simulated(t *testing.T, serial2, lan1 string) (dir string, n1, n2 *ipmisim.Sim) {
	t.Helper()
	dir = t.TempDir()
	n1, n2 = ipmisim.Start(t, "SYS-1", lan1), ipmisim.Start(t, "SYS-2", "")
	b, err := os.ReadFile("testdata/site.hcl")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		`for_each = { n1 = 1, n2 = 3 }`, fmt.Sprintf(`for_each = { n1 = { u = 1, bmc = %q, port = %d, serial = "SYS-1" }, n2 = { u = 3, bmc = %q, port = %d, serial = %q } }`,
			n1.Addr.Addr(), n1.Addr.Port(), n2.Addr.Addr(), n2.Addr.Port(), serial2),
		`unit     = each.value`, "unit     = each.value.u\n    serial   = each.value.serial",
		`00:0${each.value}"`, `00:0${each.value.u}"`,
		`bmc "b" {`, "network \"oob\" { cidr = \"127.0.0.0/8\" }\nbmc \"b\" {", "  network  = network.boot\n  username", "  network  = network.oob\n  username",
		`  password = secret("env:PW")`, "  password = secret(\"env:PW\")\n  cipher_suite = 3",
		`bmc { address = "192.0.2.10${each.value}" }`, "bmc {\n      address = each.value.bmc\n      port    = each.value.port\n    }").Replace(string(b))
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, n1, n2
}

// ironrail runs one command on a site, and returns what it printed.
func ironrail(t *testing.T, dir string, code int, args ...string) (out, talk string) {
	t.Helper()
	var o, e bytes.Buffer
	a := newApp(&o, &e)
	a.environ = func(name string) (string, bool) { return ipmisim.Password, name == "PW" }
	if got := a.run(t.Context(), append([]string{"-C", dir}, args...)); got != code {
		t.Fatalf("ironrail %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, o.String(), e.String())
	}
	return o.String(), e.String()
}

// TestPeerPower switches nodes by the BMCs of an independent implementation of IPMI.
func TestPeerPower(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmi_sim")
	dir, n1, n2 := simulated(t, "SYS-2", "")
	if out, _ := ironrail(t, dir, 0, "power", "on", "n1", "n2", "--dry-run"); !strings.Contains(out, "n1             off  batch 1: switch it on") || n1.Did() != "" {
		t.Errorf("%s; did %s", out, n1.Did())
	}
	if _, talk := ironrail(t, dir, 1, "power", "on", "n1"); !strings.Contains(talk, "this needs an answer, and standard input is not a terminal") || n1.Did() != "" {
		t.Errorf("%s; did %s", talk, n1.Did())
	}
	ironrail(t, dir, 0, "power", "on", "n1", "n2", "--auto-approve")
	if n1.Did() != "power 1" || n2.Did() != "power 1" {
		t.Errorf("on: %s; %s", n1.Did(), n2.Did())
	}
	out, _ := ironrail(t, dir, 0, "power", "cycle", "n1", "--auto-approve", "--reason", "kernel hangs", "--json")
	var doc directDocument
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Results) != 1 || doc.Results[0].State != "done" || n1.Did() != "power 1, power 0, power 1" {
		t.Errorf("cycle: %v %s; did %s", err, out, n1.Did())
	}
	n2.Put("deaf", "")
	if out, _ := ironrail(t, dir, 3, "power", "off", "n1", "n2", "--wait", "4s", "--auto-approve"); !strings.Contains(out, "n1             done: it shut down within") ||
		!strings.Contains(out, "n2             failed: power still reads on") || n1.Get("power") != "0" || n2.Get("power") != "1" {
		t.Errorf("off: %s; %s, %s", out, n1.Did(), n2.Did())
	}
	ironrail(t, dir, 0, "power", "off", "n2", "--wait", "0", "--force", "--auto-approve")
	if !strings.HasSuffix(n2.Did(), "power 0") {
		t.Errorf("hard: %s", n2.Did())
	}
	if out, _ := ironrail(t, dir, 1, "power", "reset", "n2", "--auto-approve"); !strings.Contains(out, "the node is off and cannot be reset") {
		t.Errorf("reset of a node that is off: %s", out)
	}
	out, _ = ironrail(t, dir, 0, "why", "n1")
	if !strings.Contains(out, "power cycle by ") || !strings.Contains(out, "(kernel hangs): off: power reads off after") {
		t.Errorf("why: %s", out)
	}
	if out, _ = ironrail(t, dir, 0, "events", "--node", "n1"); !strings.Contains(out, "power cycle by ") || !strings.Contains(out, "direct ") {
		t.Errorf("events: %s", out)
	}
}

// TestPeerPowerOfAnother: a BMC that sits in another node is found before anything is done.
func TestPeerPowerOfAnother(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmi_sim")
	dir, n1, n2 := simulated(t, "SYS-9", "")
	out, _ := ironrail(t, dir, 3, "power", "on", "n1", "n2", "--auto-approve")
	if !strings.Contains(out, `n2             left alone: this is the BMC of another node: the BMC at `+n2.Addr.Addr().String()+` says that it sits in serial "SYS-2"; the inventory says "SYS-9"`) {
		t.Error(out)
	}
	if n1.Did() != "power 1" || n2.Did() != "" {
		t.Errorf("%s; %s", n1.Did(), n2.Did())
	}
}

// TestPeerBootAndLocate sets the boot device and the light of nodes by BMCs of an independent
// implementation of IPMI.
func TestPeerBootAndLocate(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmi_sim")
	dir, n1, n2 := simulated(t, "SYS-2", "")
	out, _ := ironrail(t, dir, 0, "boot", "n1", "n2", "pxe", "--auto-approve")
	if n1.Did() != "boot pxe" || n2.Did() != "boot pxe" || !strings.Contains(out, "n1             done: boot flags read valid=false once=true uefi=false device=0x01") {
		t.Errorf("pxe: %s; %s: %s", n1.Did(), n2.Did(), out)
	}
	ironrail(t, dir, 0, "boot", "n1", "bios", "--persistent", "--auto-approve")
	ironrail(t, dir, 0, "boot", "n2", "none", "--auto-approve")
	if n1.Get("boot") != "bios" || n2.Get("boot") != "none" {
		t.Errorf("bios and none: %s; %s", n1.Did(), n2.Did())
	}
	ironrail(t, dir, 0, "hold", "n1", "--reason", "riser")
	if out, _ = ironrail(t, dir, 0, "locate", "n1", "on"); out != "n1             done: the light was asked for; this BMC does not show it\n" || n1.Get("identify") != "0 1" {
		t.Errorf("%s; %s", out, n1.Did())
	}
	ironrail(t, dir, 0, "locate", "n1", "n2", "off", "--json")
	if n1.Get("identify") != "0 0" || !strings.HasSuffix(n2.Did(), "identify 0 0") {
		t.Errorf("off: %s; %s", n1.Did(), n2.Did())
	}
	if out, _ := ironrail(t, dir, 1, "boot", "n1", "pxe", "--auto-approve"); !strings.Contains(out, "it is on hold since") || n1.Get("boot") != "bios" {
		t.Errorf("a node on hold: %s", out)
	}
}

// TestPeerRackOutlets: a client of net-snmp sees all outlets of a node go off and come on again, and the
// node has lost its power.
func TestPeerRackOutlets(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "snmpget")
	var feeds strings.Builder
	for i := range 3 {
		fmt.Fprintf(&feeds, `psu%d = "a/${(tonumber(each.key) - 1) / 8 * 3 + %d}", psu%d = "b/${(tonumber(each.key) - 1) / 8 * 3 + %d}", `, 2*i+1, i+1, 2*i+2, i+1)
	}
	dir, doors := living(t, `feeds    = ["a", "b"]`, "feeds = { "+feeds.String()+" }")
	ironrail(t, dir, 0, "--rack", "power", "on", "r01-u01", "--auto-approve")
	outlet := func(name string, number int) func() string { // rPDU2OutletSwitchedStatusState: 1 off, 2 on
		d := doorOf(t, doors, "PDU "+name)
		return func() string {
			return ask(t, nil, "snmpget", "-v2c", "-Oqv", "-c", d.Password, d.Real.String(), fmt.Sprintf("1.3.6.1.4.1.318.1.1.26.9.2.3.1.5.%d", number))
		}
	}
	done := make(chan string, 1)
	go func() {
		var out, talk bytes.Buffer
		newApp(&out, &talk).run(context.Background(), []string{"-C", dir, "--rack", "power", "cycle", "--outlets", "r01-u01", "--auto-approve"})
		done <- out.String() + talk.String()
	}()
	untilSays(t, "1", outlet("r01/b", 3)) // the last of them
	for _, name := range []string{"r01/a", "r01/b"} {
		for number := 1; number <= 4; number++ {
			want := "1"
			if number == 4 { // of the next node
				want = "2"
			}
			if got := strings.TrimSpace(outlet(name, number)()); got != want {
				t.Errorf("outlet %d of %s reads %s, want %s", number, name, got, want)
			}
		}
	}
	if out := <-done; !strings.Contains(out, "r01-u01        done: all were off for 30s; outlets read on: r01/a 1 (psu1), r01/b 1 (psu2)") {
		t.Error(out)
	}
	untilSays(t, "2", outlet("r01/a", 1))
	untilSays(t, "2", outlet("r01/b", 3))
}

// TestRackDirectBesideApply: a node that a running apply has work for is left alone, through the apply
// that owns the state, and its light is switched all the same.
func TestRackDirectBesideApply(t *testing.T) {
	t.Parallel()
	dir, _ := living(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- newApp(io.Discard, io.Discard).run(ctx, []string{"-C", dir, "--rack", "apply", "--auto-approve", "--erase", "8"})
	}()
	direct := func(args ...string) string {
		var out, talk bytes.Buffer
		code := newApp(&out, &talk).run(t.Context(), append([]string{"-C", dir, "--rack"}, args...))
		return fmt.Sprintf("%d: %s%s", code, out.String(), talk.String())
	}
	// A dry run would own the state itself as long as apply does not.
	untilSays(t, "run", func() string {
		var s siteStatus
		if err := json.Unmarshal([]byte(strings.TrimPrefix(direct("--json", "status"), "0: ")), &s); err != nil || s.Run == nil {
			return "none"
		}
		return "run"
	})
	untilSays(t, "1: power cycle:\n  r01-u01        left alone: the running apply has work for it: ", func() string {
		return direct("power", "cycle", "r01-u01", "--dry-run")
	})
	if out := direct("locate", "r01-u01", "on"); !strings.HasPrefix(out, "0: r01-u01        done: LocationIndicatorActive reads true") {
		t.Error(out)
	}
	stop()
	<-ended
}
