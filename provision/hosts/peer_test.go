// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/remote"
)

// options are how the hosts of a world are tested; new host keys are believed.
func (w *world) options() Options {
	w.t.Helper()
	agent, err := buildAgent()
	if err != nil {
		w.t.Skipf("needs the Go toolchain: %v", err)
	}
	o := testOptions(w.dir, agent, func(s string) { w.t.Log(s) })
	for _, p := range w.peers {
		o.List = append(o.List, p.host)
	}
	return o
}

// testOptions are options without hosts.
func testOptions(dir, agent string, say func(string)) Options {
	return Options{Agent: agent, Text: Text{File: "nodes.txt", Version: "test"}, Say: say, Now: time.Now,
		Login: Login{User: "root", KeyFile: filepath.Join(dir, "key"), KnownHosts: []string{filepath.Join(dir, "known_hosts")}, Confirm: func(context.Context, []UnknownKey) (bool, error) { return true, nil }}}
}

// verdicts are the hosts with their status, and the parts and causes of findings.
func verdicts(in report.Input) string {
	var list []string
	for _, n := range in.Nodes {
		text := n.Name + " " + n.Status.String()
		if n.Reason != "" {
			text += ": " + n.Reason
		}
		for _, f := range n.Findings {
			text += fmt.Sprintf(" [%s: %s]", f.Part, f.Cause)
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return strings.Join(list, "\n") + "\n"
}

// test tests the hosts, and looks that nothing remains on them.
func (w *world) test(o Options) report.Input {
	w.t.Helper()
	in, err := Test(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.clean()
	w.t.Cleanup(func() {
		if w.t.Failed() {
			var b bytes.Buffer
			_ = report.Text(&b, in)
			w.t.Log(b.String())
		}
	})
	return in
}

// clean looks that no host has a file that it had not, nor a process.
func (w *world) clean() {
	w.t.Helper()
	for _, p := range w.peers {
		if left := p.files(w.t); len(left) > 0 {
			w.t.Errorf("%s: remains %v", p.host.Name, left)
		}
		p.awaitNothing(w.t)
	}
}

func (w *world) want(in report.Input, want string) {
	w.t.Helper()
	if got := verdicts(in); got != want {
		w.t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPeerMajority: of eight hosts three are well; one has a GPU less, one a narrow link,
// one another VBIOS, one a disk of another maker, and one a GPU of another model. Nothing remains on any of them.
func TestPeerMajority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"n1", "n2", "n3"} {
		w.start(name, newMachine(t, "S-"+name))
	}
	less := newMachine(t, "S-n4")
	less.remove(gpu1)
	w.start("n4", less)
	narrow := newMachine(t, "S-n5")
	narrow.sys[hca1+"/current_link_width"] = "8"
	w.start("n5", narrow)
	odd := newMachine(t, "S-n6")
	odd.programs["nvidia-smi.xml"] = strings.ReplaceAll(odd.programs["nvidia-smi.xml"], "96.00.89.00.01", "96.00.61.00.01")
	w.start("n6", odd)
	disk := newMachine(t, "S-n7")
	disk.sys[nvme+"/nvme/nvme0/nvme0n1/device/model"] = "KIOXIA KCD81RUG3T84"
	w.start("n7", disk)
	other := newMachine(t, "S-n8")
	other.sys[gpu1+"/device"] = "0x2322"
	w.start("n8", other)
	in := w.test(w.options())
	w.want(in, `n1 accepted
n2 accepted
n3 accepted
n4 not accepted [n4 GPUs: 1 of 2 are on the PCI bus]
n5 not accepted [n5 NIC at 0000:3c:00.0: its PCIe link has 8 of 16 lanes]
n6 not accepted [n6 GPU: GPU VBIOS is 96.00.61.00.01, and 7 of 8 nodes of role nodes have 96.00.89.00.01]
n7 not accepted [n7 disk at 0000:51:00.0: disk model is KIOXIA KCD81RUG3T84, and 7 of 8 nodes of role nodes have SAMSUNG MZQL23T8HCLS-00A07]
n8 not accepted [n8 GPU 1 at 0000:3b:00.0, serial 1650000000001: its PCI id 10de:2322 is that of H800, and hardware.nodes says NVIDIA H100 80GB HBM3]
`)
	var b bytes.Buffer
	if err := report.Text(&b, in); err != nil || strings.Contains(b.String(), mostFile) || !strings.Contains(b.String(), "\nNot installed by ironrail: ") {
		t.Errorf("%v; the report does not say that ironrail did not install the nodes", err)
	}
}

// remove takes a PCI function away.
func (m *machine) remove(at string) {
	for name := range m.sys {
		if strings.HasPrefix(name, at+"/") {
			delete(m.sys, name)
		}
	}
	delete(m.links, "bus/pci/devices/"+filepath.Base(at))
}

// TestPeerNoReference: two hosts that are alike are no reference for each other, however
// well they are. A file that was written from the majority of others is one.
func TestPeerNoReference(t *testing.T) {
	t.Parallel()
	of := newWorld(t)
	for _, name := range []string{"a1", "a2", "a3"} {
		of.start(name, newMachine(t, "S-"+name))
	}
	text, err := WriteExpect(t.Context(), of.options())
	if err != nil {
		t.Fatal(err)
	}
	of.clean()
	for _, want := range []string{"# What most of 3 hosts of nodes.txt have", "product = \"SYS-821GE-TNHR\"", "interconnect = \"nvswitch\"", "{ rail = 1, pci = \"0000:3c:00.0\" }", "fabric \"infiniband\" \"infiniband-400g\"", "size  = \"3.84TB\""} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	w := newWorld(t)
	w.start("n1", newMachine(t, "S-n1"))
	down := newMachine(t, "S-n2")
	down.sys[hca0+"/infiniband/mlx5_0/ports/1/state"] = "1: DOWN"
	w.start("n2", down)
	o := w.options()
	const why = "no reference: 2 hosts are alike (Supermicro SYS-821GE-TNHR), and a majority is of 3 at least\n"
	w.want(w.test(o), "n1 "+why+"n2 "+why)
	if _, err := WriteExpect(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no reference") {
		t.Errorf("a block was written from two hosts: %v", err)
	}
	want, diags, _ := ParseExpect("expect.hcl", text, false, time.Now())
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	other, diags, _ := ParseExpect("expect.hcl", bytes.Replace(text, []byte("NVIDIA H100 80GB"), []byte("NVIDIA H200 141GB"), 1), false, time.Now())
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	o.Expected = other
	if got := verdicts(w.test(o)); !strings.Contains(got, "n1 not accepted [n1 GPUs: all 2 alike: its driver calls it NVIDIA H100 80GB HBM3, and hardware.nodes says NVIDIA H200 141GB HBM3]") {
		t.Errorf("got %s", got)
	}
	o.Expected = want
	w.want(w.test(o), `n1 accepted
n2 not accepted [n2 rail 0 of infiniband-400g (mlx5_0 at 0000:1a:00.0): its port is DOWN]
`)
}

// TestPeerDriver: GPUs of which no program tells are not accepted, whatever most have.
func TestPeerDriver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"n1", "n2", "n3"} {
		m := newMachine(t, "S-"+name)
		delete(m.programs, "nvidia-smi")
		w.start(name, m)
	}
	const want = " GPU driver: there is no nvidia-smi on the node: nothing is known of its 2 GPUs]\n"
	w.want(w.test(w.options()), "n1 not accepted [n1"+want+"n2 not accepted [n2"+want+"n3 not accepted [n3"+want)
}

// TestPeerHostKeys: an unknown key is refused where nobody confirms it, asked about once
// for all hosts, and remembered; another key than the known one is refused even so.
func TestPeerHostKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"n1", "n2", "n3"} {
		w.start(name, newMachine(t, "S-"+name))
	}
	o := w.options()
	o.Login.Confirm = nil
	in := w.test(o)
	for _, n := range in.Nodes {
		if n.Status != report.NotAccepted || len(n.Findings) != 1 || !strings.Contains(n.Findings[0].Cause, "its host key is in no file of known hosts: it showed ed25519 SHA256:") || !strings.Contains(n.Findings[0].Action, "--accept-new-host-keys") {
			t.Errorf("without anybody to ask: %+v", n)
		}
	}
	asked := 0
	o.Login.Confirm = func(_ context.Context, unknown []UnknownKey) (bool, error) {
		asked++
		if len(unknown) != 3 || unknown[0].Fingerprint() != "ed25519 "+fingerprint(w.peers[0].hostKey) {
			t.Errorf("asked about %+v", unknown)
		}
		return true, nil
	}
	w.want(w.test(o), "n1 accepted\nn2 accepted\nn3 accepted\n")
	w.want(w.test(o), "n1 accepted\nn2 accepted\nn3 accepted\n")
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	other, _, err := remote.GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	known := o.Login.KnownHosts[0]
	b, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	mine := strings.Fields(remote.AuthorizedKey(w.peers[2].hostKey, ""))[1]
	b = bytes.ReplaceAll(b, []byte(mine), []byte(strings.Fields(remote.AuthorizedKey(other, ""))[1]))
	if err := os.WriteFile(known, b, 0o600); err != nil {
		t.Fatal(err)
	}
	in = w.test(o)
	if n := in.Nodes[slices.IndexFunc(in.Nodes, func(n report.Node) bool { return n.Name == "n3" })]; n.Status != report.NotAccepted || !strings.Contains(n.Findings[0].Cause, "host key changed") || !strings.Contains(n.Findings[0].Action, "ssh-keygen -R") {
		t.Errorf("a changed key: %+v", n)
	}
	if asked != 1 {
		t.Error("a person was asked about a changed key")
	}
}

// TestPeerTwins: a node that the list names twice does not make a majority of two.
func TestPeerTwins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, mac := range map[string]string{"n1": "02:00:00:00:00:01", "n2": "02:00:00:00:00:02"} {
		m := newMachine(t, "S-"+name)
		m.function(root+"0000:17:04.0/0000:70:00.0", "0x020000", "0x8086", "0x1563", "4")
		dir := root + "0000:17:04.0/0000:70:00.0/net/eth0"
		m.sys[dir+"/address"] = mac
		m.links[dir+"/device"], m.links["class/net/eth0"] = "../../../0000:70:00.0", "../../"+dir
		w.start(name, m)
	}
	o := w.options()
	slices.SortFunc(o.List, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	twin := o.List[0]
	twin.Name, twin.Addr = "n1-again", "localhost"
	o.List = append(o.List, twin)
	const why = "no reference: 2 hosts are alike (Supermicro SYS-821GE-TNHR), and a majority is of 3 at least\n"
	w.want(w.test(o), "n1 "+why+"n1-again not accepted [n1-again SSH: it is the same node as n1: it has the same MAC addresses (02:00:00:00:00:01)]\nn2 "+why)
}

// TestPeerSudo: a user that is not root sees what it may, or all of it by sudo; one who may
// not use sudo is told so.
func TestPeerSudo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		m := newMachine(t, "S-"+name)
		m.user = "ubuntu-of-test"
		m.script("sudo", `[ "$1 $2" = "-n --" ] || exit 9; shift 2; BY_SUDO=yes exec "$@"`)
		if name == "n4" {
			m.script("sudo", `echo "sudo: a password is required" >&2; exit 1`)
		}
		m.programs["nvidia-smi"] = strings.Replace(m.programs["nvidia-smi"], "case ", `[ "$BY_SUDO" ] || { echo "Insufficient Permissions"; exit 4; }; case `, 1)
		w.start(name, m)
		w.peers[len(w.peers)-1].host.User = m.user
	}
	o := w.options()
	for _, n := range w.test(o).Nodes {
		if n.Status != report.NotAccepted || !strings.Contains(n.Findings[0].Cause, "Insufficient Permissions") {
			t.Errorf("without sudo: %+v", n)
		}
	}
	o.Login.Sudo = true
	w.want(w.test(o), "n1 accepted\nn2 accepted\nn3 accepted\n"+
		"n4 not accepted [n4 SSH: user ubuntu-of-test may not run commands by sudo without a password: exit status 1: sudo: a password is required]\n")
}

// TestPeerJump: hosts are reached through another one, whose key is asked about first.
func TestPeerJump(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"n1", "n2", "n3"} {
		w.start(name, newMachine(t, "S-"+name))
	}
	jump := w.start("jump", newMachine(t, "J"))
	o := w.options()
	o.List = o.List[:3]
	o.List[0].Addr, o.Login.Jump = "localhost", &jump.host
	var asked []int
	o.Login.Confirm = func(_ context.Context, unknown []UnknownKey) (bool, error) {
		asked = append(asked, len(unknown))
		return true, nil
	}
	w.want(w.test(o), "n1 accepted\nn2 accepted\nn3 accepted\n")
	if fmt.Sprint(asked) != "[1 3]" {
		t.Errorf("asked about %v keys", asked)
	}
	o.List[1].Addr, o.List[2].Port = "no-such-host.invalid", 1
	got := verdicts(w.test(o))
	for _, want := range []string{"n2 not accepted [n2 SSH: the jump host knows no address of \"no-such-host.invalid\"]", "n3 not accepted [n3 SSH: node n3: ssh 127.0.0.1:1: connect: node jump: ssh "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	o.Login.Confirm, o.Login.KnownHosts = nil, []string{filepath.Join(w.dir, "none")}
	if _, err := Test(t.Context(), o); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "jump host jump: its host key is in no file") {
		t.Errorf("an unknown jump host: %v", err)
	}
}

// hang makes a host whose GPUs' program does not end.
func hang(t *testing.T) *machine {
	m := newMachine(t, "S")
	m.script("nvidia-smi", "exec sleep 600")
	return m
}

// TestPeerInterrupted: Ctrl-C while a program of a host hangs leaves nothing there.
func TestPeerInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start("n1", hang(t))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for len(p.files(t)) == 0 && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
		stop()
	}()
	if _, err := Test(ctx, w.options()); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("error %v", err)
	}
	w.clean()
}

// TestPeerConnectionLost: sshd drops the connections. The node removes
// the folder, and the host is not accepted.
func TestPeerConnectionLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start("n1", newMachine(t, "S"))
	o := w.options()
	o.Say = func(text string) {
		t.Log(text)
		if strings.Contains(text, "are reached") { // the agent is there, and is to be run
			for pid, name := range p.processes(t) {
				if strings.HasPrefix(name, "sshd") && pid != p.pid {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
	}
	in, err := Test(t.Context(), o)
	if err != nil || len(in.Nodes) != 1 || in.Nodes[0].Status != report.NotAccepted || len(in.Nodes[0].Findings) == 0 {
		t.Errorf("%v, %+v", err, in.Nodes)
	}
	p.awaitNothing(t)
}

// childEnv makes the test program test the host that it names.
const childEnv = "IRONRAIL_TEST_HOST"

// child is a process that is killed.
func child() int {
	f := strings.Fields(os.Getenv(childEnv))
	list, diags := ParseList("nodes.txt", []byte(f[2]+" n1\n"))
	if len(diags) > 0 {
		return 64
	}
	o := testOptions(f[0], f[1], func(s string) { fmt.Fprintln(os.Stderr, s) })
	o.List = list
	if _, err := Test(context.Background(), o); err != nil {
		return 1
	}
	return 0
}

// TestPeerKilled: a process that is killed, and a folder where programs may not be run,
// leave nothing behind either.
func TestPeerKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := hang(t)
	m.shm = ",noexec"
	p := w.start("n1", m)
	agent, err := buildAgent()
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+w.dir+" "+agent+" "+p.host.Endpoint())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for !strings.HasSuffix(strings.Join(seen, " "), "/ironrail-agent") && t.Context().Err() == nil {
		time.Sleep(20 * time.Millisecond)
		seen = p.files(t)
	}
	if !strings.HasPrefix(seen[0], "/tmp/ironrail-test.") {
		t.Errorf("the agent lies in %v", seen)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	p.awaitNothing(t) // the node does it by itself
}
