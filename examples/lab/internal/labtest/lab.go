// SPDX-License-Identifier: Apache-2.0

// Package labtest runs the lab's site on real emulated machines for a test: each
// Lab has its own network namespace, its own copy of the site and its own BMC
// password, and is judged by what the product says and, apart from that, by what
// the BMCs and the disks were seen to do.
package labtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Deadlines. None of them is an expectation: they end what hangs.
const (
	commandLimit = 20 * time.Minute
	applyLimit   = 90 * time.Minute
)

// password is the BMC password of every lab. It is looked for wherever it does
// not belong at the end of each test.
const password = "Canary-3141592653"

// The columns of machines.csv that tests change.
const (
	ColumnBMC     = "bmc_address"
	ColumnBootMAC = "boot_mac"
)

// Lab is one running lab. It is used by one goroutine, but for Run.
type Lab struct {
	t        *testing.T
	bin      string // folder of the programs under test
	dir      string // of everything below
	site     string // the site's folder
	machines string // state folder of ironrail-lab
	name     string // network namespace
	started  time.Time
}

// Options say how a lab differs from the site in examples/lab.
type Options struct {
	Name     string                      // short; folder and namespace are called after it
	Machines []string                    // default: n1 and n2
	HCL      []Edit                      // of site.hcl
	CSV      func([][]string) [][]string // of machines.csv, seen by the product only
	Disks    []Disk                      // beside each machine's system disk, or in its place
	Memory   int                         // MiB of each machine; 0: 1024
}

// Edit replaces one text, which must be there.
type Edit struct {
	Old, New string
	All      bool // every occurrence; else it must be the only one
}

// Up copies the site and starts its machines, power off. Both end with the test.
func Up(t *testing.T, o Options) *Lab {
	t.Helper()
	l := prepare(t, o)
	l.t.Cleanup(l.down)
	l.watchArgv()
	args := []string{"up", "--dir", l.machines, "--site", l.source(), "--name", l.name, "--detach"}
	if len(o.Machines) > 0 {
		args = append(args, "--machines", strings.Join(o.Machines, ","))
	}
	if o.Memory > 0 {
		args = append(args, "--memory", strconv.Itoa(o.Memory))
	}
	if len(o.Disks) > 0 {
		args = append(args, "--disks", l.writeDisks(o.Disks))
	}
	if out := l.lab(args...); out.Code != 0 {
		t.Fatalf("lab up: %s", out)
	}
	return l
}

// For is the lab as seen from a part of its test.
func (l *Lab) For(t *testing.T) *Lab {
	part := *l
	part.t = t
	return &part
}

// prepare makes a lab without starting anything, or skips the test.
func prepare(t *testing.T, o Options) *Lab {
	t.Helper()
	top, err := filepath.Abs("../..") // tests run in examples/lab
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	l := &Lab{t: t, bin: filepath.Join(top, "bin"), name: "lab-" + o.Name, started: time.Now()}
	for _, p := range []string{"ironrail", "ironrail-agent", "ironrail-lab"} {
		if _, err := os.Stat(filepath.Join(l.bin, p)); err != nil {
			t.Skipf("needs %s: run make build", p)
		}
	}
	if out := l.lab("check"); out.Code != 0 {
		t.Skipf("needs packages: %s", out)
	}
	l.skipPassed(t)
	l.dir = filepath.Join(top, "examples", "lab", ".lab", "t", o.Name)
	l.site, l.machines = filepath.Join(l.dir, "site"), filepath.Join(l.dir, "m")
	if _, err := os.Stat(l.machines); err == nil { // of a test that was killed
		l.lab("down", "--dir", l.machines, "--purge")
	}
	if err := os.RemoveAll(l.dir); err != nil {
		t.Fatal(err)
	}
	l.copySite(o)
	return l
}

// source is the folder that the machines are made from; the site that the
// product sees may differ.
func (l *Lab) source() string { return filepath.Join(l.bin, "..", "examples", "lab") }

// Result is how a command ended.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// String is what the command printed.
func (r Result) String() string {
	return fmt.Sprintf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
}

// lab runs ironrail-lab.
func (l *Lab) lab(args ...string) Result {
	l.t.Helper()
	return l.run(commandLimit, l.bin+"/ironrail-lab", args...)
}

// Inside runs a command in the lab's network.
func (l *Lab) Inside(args ...string) Result {
	l.t.Helper()
	return l.run(commandLimit, l.bin+"/ironrail-lab", append([]string{"exec", "--dir", l.machines, "--"}, args...)...)
}

// OnNode runs a command line on a node by SSH as root, with the site's key: a
// change that ironrail has not made. It returns what the command prints; the test fails
// when the command does.
func (l *Lab) OnNode(node, command string) string {
	l.t.Helper()
	return l.onNode(commandLimit, node, command)
}

func (l *Lab) onNode(limit time.Duration, node, command string) string {
	l.t.Helper()
	res := l.run(limit, l.bin+"/ironrail-lab", append([]string{"exec", "--dir", l.machines, "--"}, l.ssh(node, 60, command)...)...)
	if res.Code != 0 {
		l.t.Fatalf("%s: %q: %s", node, command, res)
	}
	return res.Stdout
}

// ssh is the command line that runs another one on a node as root, with the site's key.
func (l *Lab) ssh(node string, seconds int, command string) []string {
	number, err := strconv.Atoi(strings.TrimPrefix(node, "n"))
	if err != nil {
		l.t.Fatal(err)
	}
	address := "10.77.0." + strconv.Itoa(10+number) // as site.hcl has it
	return []string{"ssh", "-o", "BatchMode=yes", "-o", fmt.Sprintf("ConnectTimeout=%d", seconds), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-i", l.Key(), "root@" + address, command}
}

// Key is the file of the site's private SSH key, with which OnNode logs in.
func (l *Lab) Key() string { return filepath.Join(l.State(), "keys", "ssh_ed25519") }

// PublicKey is its public half, as authorized_keys has it.
func (l *Lab) PublicKey() string {
	l.t.Helper()
	res := l.run(commandLimit, "ssh-keygen", "-y", "-f", l.Key())
	if res.Code != 0 {
		l.t.Fatalf("public key: %s", res)
	}
	return strings.TrimSpace(res.Stdout)
}

// Ironrail runs the product on the site, in the lab's network.
func (l *Lab) Ironrail(args ...string) Result {
	l.t.Helper()
	limit := commandLimit
	if len(args) > 0 && (args[0] == "apply" || args[0] == "rebuild") {
		limit = applyLimit
	}
	return l.run(limit, l.bin+"/ironrail-lab", append([]string{"exec", "--dir", l.machines, "--", l.bin + "/ironrail", "-C", l.site}, args...)...)
}

// Outside runs the product on the site outside the lab's network, where the mirrors of
// distributions are: what is built is built there.
func (l *Lab) Outside(args ...string) Result {
	l.t.Helper()
	return l.run(applyLimit, l.bin+"/ironrail", append([]string{"-C", l.site}, args...)...)
}

func (l *Lab) run(limit time.Duration, program string, args ...string) Result {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = environment()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		l.t.Fatalf("%s %q hangs for %s:\n%s%s", filepath.Base(program), args, limit, out.String(), errs.String())
	}
	if err != nil && cmd.ProcessState == nil {
		l.t.Fatalf("%s: %v", program, err)
	}
	res := Result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	l.noSecret(filepath.Base(program), res)
	return res
}

func environment() []string {
	return append(os.Environ(), "LAB_BMC_PASSWORD="+password, "IPMI_PASSWORD="+password)
}

// Fault breaks something on purpose, as ironrail-lab fault does.
func (l *Lab) Fault(machine, fault string, args ...string) {
	l.t.Helper()
	if out := l.lab(append([]string{"fault", "--dir", l.machines, "--machine", machine, fault}, args...)...); out.Code != 0 {
		l.t.Fatalf("fault %s: %s", fault, out)
	}
}

// down judges what every test must leave behind, and ends the lab. With KEEP=1 in
// the environment, as for `make lab`, the machines run on, to look around; the
// next test of the same name ends them.
func (l *Lab) down() {
	l.noPassword()
	if l.t.Failed() {
		l.dump()
	}
	if os.Getenv("KEEP") == "1" {
		l.t.Logf("the machines run on: %s/ironrail-lab exec --dir %s -- %s/ironrail -C %s status", l.bin, l.machines, l.bin, l.site)
		return
	}
	if out := l.lab("down", "--dir", l.machines, "--purge"); out.Code != 0 {
		l.t.Errorf("lab down: %s", out)
	}
	if !l.t.Failed() {
		_ = os.RemoveAll(l.dir)
	}
	l.t.Logf("%s took %s", l.name, time.Since(l.started).Round(time.Second))
}

// dump logs the end of everything that tells why a test failed.
func (l *Lab) dump() {
	files, _ := filepath.Glob(l.machines + "/*/console.log")
	events, _ := filepath.Glob(l.site + "/.ironrail/events/*")
	for _, f := range append(append(files, l.machines+"/effects.jsonl"), events...) {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		b = b[max(0, len(b)-6000):]
		l.t.Logf("--- end of %s\n%s", strings.TrimPrefix(f, l.dir+"/"), strings.ToValidUTF8(strings.ReplaceAll(string(b), "\x1b", "^["), "?"))
	}
}
