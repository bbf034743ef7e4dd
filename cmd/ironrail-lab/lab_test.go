// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/supervisor"
	"github.com/ironrail/ironrail/internal/peertest"
)

// asProgram makes the test binary act as ironrail-lab: the supervisor and
// ipmi_sim's chassis program are started from it.
const asProgram = "IRONRAIL_LAB_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// canary is the BMC password; it must be found in lan.conf alone.
const canary = "Canary-2718281828"

// testLab is one lab of a test, with a network boot server that is not ours.
type testLab struct {
	name, dir, self string
}

// newLab starts a lab or skips the test with the reason why it cannot.
func newLab(t *testing.T, machines string) *testLab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	peertest.Need(t, "ip", "tc", "qemu-system-x86_64", "ipmi_sim", "ipmitool", "dnsmasq", "grub-mkimage", "mkfs.vfat", "mcopy", "/usr/share/OVMF/OVMF_CODE_4M.fd")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "lab") // short: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	l := &testLab{name: fmt.Sprintf("labtest%d", os.Getpid()), dir: dir, self: self}
	t.Cleanup(func() {
		if b, err := os.ReadFile(filepath.Join(dir, "effects.jsonl")); t.Failed() {
			t.Logf("effects (%v):\n%s", err, b)
		}
		if out, err := l.run(context.Background(), "down", "--purge"); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("down --purge left %v", left)
		}
		_ = os.RemoveAll(dir)
	})
	if out, err := l.run(t.Context(), "up", "--site", "../../examples/lab", "--name", l.name, "--machines", machines, "--detach"); err != nil {
		t.Fatalf("up: %v: %s", err, out)
	}
	return l
}

// run runs ironrail-lab.
func (l *testLab) run(ctx context.Context, command string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.self, append([]string{command, "--dir", l.dir}, args...)...)
	// A program with the race detector sleeps a second at its end, unless told not
	// to; ipmi_sim would wait for that, and ipmitool would send its command again.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", asProgram+"=1", "LAB_BMC_PASSWORD="+canary, "IPMI_PASSWORD="+canary)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ipmi runs ipmitool inside the lab and returns what it prints. It waits 10 s
// before it sends a command again: by its default of 1 s, a loaded machine would
// count commands twice.
func (l *testLab) ipmi(t *testing.T, address string, words ...string) string {
	t.Helper()
	out, err := l.run(t.Context(), "exec", append([]string{"--", "ipmitool", "-I", "lanplus", "-C", "3", "-N", "10", "-H", address, "-U", "admin", "-E"}, words...)...)
	if err != nil {
		t.Fatalf("ipmitool %v: %v: %s", words, err, out)
	}
	return out
}

func (l *testLab) stats(t *testing.T, machine string) *supervisor.Stats {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), l.self, "stats", "--dir", l.dir)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	var all map[string]*supervisor.Stats
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all[machine]
}

// waitConsole waits until the console holds each mark so many times.
func (l *testLab) waitConsole(t *testing.T, machine string, net, disk int) {
	t.Helper()
	name := filepath.Join(l.dir, machine, "console.log")
	deadline := time.Now().Add(3 * time.Minute) // many labs may share two cores
	for {
		b, _ := os.ReadFile(name)
		n, d := bytes.Count(b, []byte(netMark)), bytes.Count(b, []byte(diskMark))
		if n == net && d == disk {
			return
		}
		if n > net || d > disk || t.Failed() || time.Now().After(deadline) {
			t.Fatalf("%s: booted %d times from net and %d from disk, want %d and %d; console:\n%.4000q", machine, n, d, net, disk, b)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// bootServer runs dnsmasq in the lab: DHCP, TFTP and router advertisements.
func (l *testLab) bootServer(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // dnsmasq reads it as nobody
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "net.0"), realMode(netMark, true), 0o644); err != nil {
		t.Fatal(err)
	}
	efiProgram(t, filepath.Join(root, "net.efi"), "echo "+netMark+"\nreboot\n")
	cmd := exec.Command("ip", "netns", "exec", l.name, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0",
		"--user=root", "--interface=lab-boot", "--bind-interfaces", "--no-ping", "--log-facility=-", "--leasefile-ro",
		"--dhcp-range=10.77.0.50,10.77.0.60", "--enable-ra", "--dhcp-range=fd77::,ra-only",
		"--enable-tftp", "--tftp-root="+root, "--dhcp-match=set:efi,option:client-arch,7", "--dhcp-boot=tag:efi,net.efi", "--dhcp-boot=tag:!efi,net.0")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("dnsmasq:\n%s", log.String())
		}
	})
}

// TestPeerBootOnce has a BIOS and a UEFI machine netboot exactly once for each time
// that they are asked to, by an IPMI client that is not ours.
func TestPeerBootOnce(t *testing.T) {
	l := newLab(t, "n1,n2")
	l.bootServer(t)
	efi := filepath.Join(t.TempDir(), "disk.efi")
	efiProgram(t, efi, "echo "+diskMark+"\n")
	efiDisk(t, filepath.Join(l.dir, "n2", "disk.raw"), efi)
	f, err := os.OpenFile(filepath.Join(l.dir, "n1", "disk.raw"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bootSector(diskMark)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("machines", func(t *testing.T) {
		for name, bmc := range map[string]string{"n1": "10.77.1.11", "n2": "10.77.1.12"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l.identity(t, name, bmc)
				l.bootOnce(t, name, bmc)
			})
		}
	})
	l.noPassword(t)
}

func (l *testLab) identity(t *testing.T, name, bmc string) {
	t.Helper()
	serial := "LAB000" + name[1:]
	if out := l.ipmi(t, bmc, "fru", "print", "0"); strings.Count(out, serial) != 2 {
		t.Errorf("FRU has not the serial %s in board and product area:\n%s", serial, out)
	}
	if out := l.ipmi(t, bmc, "mc", "guid", "smbios"); !strings.Contains(out, "6c616230-0000-4000-8000-00000000000"+name[1:]) {
		t.Errorf("system GUID:\n%s", out)
	}
}

func (l *testLab) bootOnce(t *testing.T, name, bmc string) {
	t.Helper()
	power := func(want string) {
		t.Helper()
		if out := l.ipmi(t, bmc, "power", "status"); !strings.Contains(out, "is "+want) {
			t.Errorf("power status %q, want %s", out, want)
		}
	}
	power("off")
	l.ipmi(t, bmc, "chassis", "bootdev", "pxe")
	l.ipmi(t, bmc, "power", "on")
	power("on")
	l.waitConsole(t, name, 1, 1) // the boot program resets the machine itself
	l.ipmi(t, bmc, "power", "cycle")
	l.waitConsole(t, name, 1, 2)
	power("on")
	l.ipmi(t, bmc, "chassis", "bootdev", "pxe")
	l.ipmi(t, bmc, "power", "reset")
	l.waitConsole(t, name, 2, 3)
	l.ipmi(t, bmc, "power", "off")
	power("off")
	s := l.stats(t, name)
	if s.Boots.Net != 2 || s.Boots.Disk != 3 || s.Cycles != 1 || s.Starts != 2 || s.Resets[supervisor.ByBMC] != 1 || s.Resets[supervisor.ByGuest] != 2 {
		t.Errorf("counts %+v", *s)
	}
	want := map[string]int{"boot pxe": 2, "power on": 2, "power off": 2, "reset": 1}
	for what, n := range want {
		if s.Commands[what] != n {
			t.Errorf("command %q counted %d times, want %d", what, s.Commands[what], n)
		}
	}
}

// noPassword looks for the password in all that the lab wrote and runs.
func (l *testLab) noPassword(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(l.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "lan.conf" || d.Name() == "disk.raw" {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(canary)) {
			t.Errorf("the password is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	out, err := exec.CommandContext(t.Context(), "ip", "netns", "pids", l.name).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(out)) {
		for _, name := range []string{"cmdline", "environ"} {
			if b, _ := os.ReadFile("/proc/" + pid + "/" + name); bytes.Contains(b, []byte(canary)) {
				t.Errorf("the password is in the %s of process %s", name, pid)
			}
		}
	}
}
