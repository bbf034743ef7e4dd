// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rack"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// living starts the virtual rack of the demo, changed as the pairs of old and new texts say,
// until the test ends. It returns the site's folder and where the devices answer.
func living(t *testing.T, changes ...string) (dir string, doors []virtual.Endpoint) {
	t.Helper()
	return livingAt(t, 600, changes...)
}

// livingAt is living with a clock that runs so many times as fast as ours. What a busy machine
// takes to answer is so many times as long to who waits by that clock.
func livingAt(t *testing.T, speed float64, changes ...string) (dir string, doors []virtual.Endpoint) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	dir = t.TempDir()
	for _, name := range []string{"site.hcl", "manifest.csv"} {
		b, err := os.ReadFile(filepath.Join("../../examples/demo", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.NewReplacer(changes...).Replace(string(b))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inv, diags, _ := provision.Load(dir, inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan []virtual.Endpoint, 1), make(chan error, 1)
	go func() {
		ended <- rack.Run(ctx, inv, rack.Options{Seed: 1, Speed: speed, OnReady: func(_ rack.Info, all []virtual.Endpoint) { ready <- all }})
	}()
	select {
	case doors = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return dir, doors
}

// doorOf is where a device answers.
func doorOf(t *testing.T, doors []virtual.Endpoint, name string) virtual.Endpoint {
	t.Helper()
	i := slices.IndexFunc(doors, func(d virtual.Endpoint) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("no %s in %+v", name, doors)
	}
	return doors[i]
}

// ask runs a program of others; it has to end well.
func ask(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// untilSays asks until the answer holds a text; the bound only ends a test that hangs.
func untilSays(t *testing.T, want string, ask func() string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got = ask(); strings.Contains(got, want) {
			return
		}
	}
	t.Fatalf("it says %q, not %q", got, want)
}

// powerOf is what `power status` says of a node.
func powerOf(t *testing.T, dir, node string) func() string {
	return func() string {
		out, _ := ironrail(t, dir, 0, "--rack", "power", "status", node, "--json")
		return out
	}
}

// TestPeerRackIPMI: what the verbs do to a node of the virtual rack ipmitool sees, and the
// reverse.
func TestPeerRackIPMI(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmitool")
	dir, doors := living(t, `protocol = "redfish"`, `protocol = "ipmi"`, `tls      = "pin-first-seen"`, "")
	d := doorOf(t, doors, "r01-u01 BMC")
	ipmitool := func(args ...string) string {
		words := append([]string{"-I", "lanplus", "-N", "20", "-R", "6", "-H", d.Real.Addr().String(), "-p", fmt.Sprint(d.Real.Port()), "-U", d.User, "-E"}, args...)
		return ask(t, []string{"IPMI_PASSWORD=" + d.Password}, "ipmitool", words...)
	}
	status := func() string { return ipmitool("chassis", "power", "status") }
	if got := status(); got != "Chassis Power is off\n" {
		t.Error(got)
	}
	ironrail(t, dir, 0, "--rack", "power", "on", "r01-u01", "--auto-approve")
	if got := status(); got != "Chassis Power is on\n" {
		t.Error(got)
	}
	ipmitool("chassis", "power", "off")
	untilSays(t, `"state": "off"`, powerOf(t, dir, "r01-u01"))
	ironrail(t, dir, 0, "--rack", "power", "cycle", "r01-u01", "--auto-approve")
	if got := status(); got != "Chassis Power is on\n" {
		t.Error(got)
	}
	ironrail(t, dir, 0, "--rack", "boot", "r01-u01", "pxe", "--auto-approve")
	if got := ipmitool("chassis", "bootparam", "get", "5"); !strings.Contains(got, "Force PXE") {
		t.Errorf("after boot pxe: %s", got)
	}
	ironrail(t, dir, 0, "--rack", "locate", "r01-u01", "on")
	// Get Chassis Status (IPMI 2.0, 28.2): of its third byte bits 4 and 5 are the light.
	raw := strings.Fields(ipmitool("raw", "0x00", "0x01"))
	if light, err := strconv.ParseUint(slices.Concat(raw, []string{"", "", ""})[2], 16, 8); err != nil || light&0x30 == 0 {
		t.Errorf("after locate on: %v, %v", raw, err)
	}
	theirs := strings.Split(strings.TrimSpace(ipmitool("sel", "elist")), "\n")
	ours, _ := ironrail(t, dir, 0, "--rack", "sel", "r01-u01")
	if lines := strings.Split(strings.TrimSpace(ours), "\n"); len(lines)-1 != len(theirs) || len(theirs) < 3 || strings.Count(ours, "(deasserted)") != strings.Count(strings.Join(theirs, "\n"), "Deasserted") {
		t.Errorf("the event log by ipmitool\n%s\nand by sel\n%s", strings.Join(theirs, "\n"), ours)
	}
	number := regexp.MustCompile(`Inlet Temp *\| *([0-9.]+)`).FindStringSubmatch(ipmitool("sensor", "list"))
	ours, _ = ironrail(t, dir, 0, "--rack", "sensors", "r01-u01")
	mine := regexp.MustCompile(`Inlet Temp +([0-9.]+) Cel`).FindStringSubmatch(ours)
	if number == nil || mine == nil {
		t.Fatalf("no temperature: %v\n%s", number, ours)
	}
	a, _ := strconv.ParseFloat(number[1], 64)
	if b, _ := strconv.ParseFloat(mine[1], 64); a != b || a == 0 {
		t.Errorf("the air is %v by ipmitool, and %v by sensors", a, b)
	}
}

// TestPeerRackRedfish: what the verbs do to a node of the virtual rack OpenStack's client of
// Redfish sees, and the reverse.
func TestPeerRackRedfish(t *testing.T) {
	t.Parallel()
	python := peertest.Python(t, "sushy")
	dir, doors := living(t)
	d := doorOf(t, doors, "r01-u09 BMC")
	const script = `
import sys, time, warnings
import sushy
warnings.simplefilter("ignore")
url, user, password, do = sys.argv[1:]
root = sushy.Sushy(url, auth=sushy.auth.SessionOrBasicAuth(user, password), verify=False)
system = root.get_system_collection().get_members()[0]
if do == "off":
    system.reset_system(sushy.RESET_FORCE_OFF)
print(system.serial_number, system.power_state.value)
`
	sushy := func(do string) string {
		return ask(t, []string{"REQUESTS_CA_BUNDLE=", "CURL_CA_BUNDLE="}, python, "-c", script, "https://"+d.Real.String(), d.User, d.Password, do)
	}
	if got := sushy("look"); got != "S41201002 Off\n" {
		t.Error(got)
	}
	ironrail(t, dir, 0, "--rack", "power", "on", "r01-u09", "--auto-approve")
	if got := sushy("look"); got != "S41201002 On\n" {
		t.Error(got)
	}
	sushy("off")
	untilSays(t, `"state": "off"`, powerOf(t, dir, "r01-u09"))
	exchanged(t, dir)
	if got := sushy("look"); got != "S41201001 Off\n" {
		t.Errorf("after the chassis of two nodes were swapped: %s", got)
	}
}

// exchanged has a technician swap two chassis.
func exchanged(t *testing.T, dir string) {
	t.Helper()
	if _, talk := ironrail(t, dir, 0, "rack", "exchange", "r01-u01", "r01-u09"); !strings.Contains(talk, "each other's chassis") {
		t.Error(talk)
	}
}

// TestPeerRackPDU: the tools of net-snmp read at a PDU of the virtual rack what nodes draw
// that the verbs have switched on, and nothing without its community.
func TestPeerRackPDU(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "snmpget")
	dir, doors := living(t)
	d := doorOf(t, doors, "PDU r01/a")
	if got := ask(t, nil, "snmpget", "-v2c", "-c", d.Password, d.Real.String(), "1.3.6.1.2.1.1.1.0"); !strings.Contains(got, "APC") {
		t.Error(got)
	}
	amperes := func() int { // rPDU2PhaseStatusCurrent of the first phase, tenths
		got := ask(t, nil, "snmpget", "-v2c", "-Oqv", "-c", d.Password, d.Real.String(), "1.3.6.1.4.1.318.1.1.26.6.3.1.5.1")
		n, err := strconv.Atoi(strings.TrimSpace(got))
		if err != nil {
			t.Fatal(got)
		}
		return n
	}
	idle := amperes()
	ironrail(t, dir, 0, "--rack", "power", "on", "r01-u01", "--auto-approve")
	if loaded := amperes(); loaded <= idle {
		t.Errorf("%d tenths of an ampere before, %d after", idle, loaded)
	}
	if out, err := exec.CommandContext(t.Context(), "snmpget", "-v2c", "-r0", "-t1", "-c", "public", d.Real.String(), "1.3.6.1.2.1.1.1.0").CombinedOutput(); err == nil {
		t.Errorf("another community is answered: %s", out)
	}
}
