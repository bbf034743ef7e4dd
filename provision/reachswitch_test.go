// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/remote"
)

// The password that root has for the sshd of these tests, and what /etc/shadow says
// of it; it is nobody's.
const (
	testPassword = "not-a-secret-1"
	testShadow   = "root:$6$ironrailtest$5CwdomA6GjGHJuqDw8.elBeZKOvk4jLIDz2A9aworXcj2e22Vvu4zK5pWvk8ytqrI/CA7Yip1zM2z4kWHOvDR.:19000:0:99999:7:::\n"
)

// sonicScript plays the commands of SONiC on files of the folder D. Each writes
// down that it was called.
const sonicScript = `#!/bin/sh
D=%q
name=$(basename "$0")
[ "$name" = sudo ] && { shift; name=$1; shift; }
echo "$name $*" >>"$D/log"
case "$name" in
sonic-cfggen) cat "$D/running.json" ;;
cat) cat "$D/saved.json" ;;
config)
  verb=$1; shift
  case "$verb" in
  checkpoint) cp "$D/running.json" "$D/$1.cp" ;;
  delete-checkpoint) rm "$D/$1.cp" ;;
  rollback) cp "$D/$1.cp" "$D/running.json" ;;
  save) cp "$D/running.json" "$D/saved.json" ;;
  apply-patch)
    case "$*" in *-d*) for f; do :; done; cp "$f" "$D/patch.json"; exit 0 ;; esac
    [ -e "$D/hang" ] && { echo $$ >"$D/hung"; exec sleep 600; }
    if [ -e "$D/first" ]; then mv "$D/first" "$D/running.json"; echo "Error: still some parts not updated" >&2; exit 2; fi
    cp "$D/target.json" "$D/running.json"; echo "Patch applied successfully." ;;
  esac ;;
esac
`

// planned is when plans and looks are made.
var planned = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// bench is a leaf of the example site that a real sshd stands for.
type bench struct {
	dir   string
	kind  *switchos.Kind
	sw    *inventory.Switch
	want  *sonic.Switch
	way   *reach.Switches
	steps []plan.Step
	facts map[fact.Key]fact.Fact
	found []stage.Finding
	links []*roce.Links
}

// reconnect forgets the host keys that were seen, as the next run does.
func (b *bench) reconnect() {
	b.way = &reach.Switches{Inv: b.way.Inv, Pool: b.way.Pool, Secrets: b.way.Secrets, Facts: b.way.Facts}
	b.kind = switchos.New(roce.New(nil, b.links...), b.way.Inv, b.way, b.links)
}

// newBench starts an sshd whose commands are sonicScript, and a client for it.
func newBench(t *testing.T) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("sshd for root's password needs root")
	}
	inv, diags, _ := Load("../examples/mi300x-roce", inventory.Options{Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	b := &bench{dir: t.TempDir(), facts: map[fact.Key]fact.Fact{}}
	links := roce.Addresses(inv)
	for _, s := range sonic.Switches(inv, inv.Fabrics[0], links[0]) {
		if s.Switch.Name == "net/leaf-1" {
			b.sw, b.want = s.Switch, s
		}
	}
	login := *b.sw.Login
	login.Username = "root"
	b.sw.Login = &login
	b.sshd(t)
	_, pem, err := remote.GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	b.way = &reach.Switches{Inv: inv, Pool: remote.NewPoolOn(4, nil), Secrets: given{login.Password: testPassword, "env:KEY": string(pem)}, Facts: b.fact}
	t.Cleanup(func() { _ = b.way.Pool.Close() })
	b.links = links
	b.reconnect()
	b.steps = b.kind.Steps(nil, inv.Fabrics[0], inv.Nodes, nil)
	b.put(t, "running.json", b.factory())
	b.put(t, "target.json", merged(b.factory(), b.want.Render()))
	return b
}

// factory is a CONFIG_DB with the ports of the fabric and nothing on them.
func (b *bench) factory() sonic.Config {
	c := sonic.Config{}
	c.Set("DEVICE_METADATA", "localhost", sonic.Entry{"hostname": "sonic"})
	for _, p := range b.want.Ports {
		c.Set("PORT", p.Name, sonic.Entry{"mtu": "9100", "lanes": "1"})
	}
	return c
}

func merged(a, b sonic.Config) sonic.Config {
	for table, keys := range b {
		for key, e := range keys {
			a.Set(table, key, e)
		}
	}
	return a
}

func (b *bench) put(t *testing.T, name string, c sonic.Config) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), c.JSON(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// get reads what is left on the switch.
func (b *bench) get(t *testing.T, name string) []byte {
	t.Helper()
	out, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sshd starts the daemon in a mount namespace of its own, in which root has the
// password of the tests.
func (b *bench) sshd(t *testing.T) {
	t.Helper()
	peertest.Need(t, "/usr/sbin/sshd", "unshare", "mount")
	if out, err := exec.Command("unshare", "-m", "mount", "--bind", "/etc/shadow", "/etc/shadow").CombinedOutput(); err != nil {
		t.Skipf("no mount namespace: %v: %s", err, out)
	}
	_ = os.Mkdir("/run/sshd", 0o755) // sshd wants it to separate privileges
	_, host, err := remote.GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	_ = l.Close()
	conf := fmt.Sprintf("Port %d\nListenAddress %s\nHostKey %s/host\nAuthorizedKeysFile %[3]s/authorized\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication yes\nSetEnv HOME=%[3]s PATH=%[3]s/bin:/usr/bin:/bin\n", at.Port(), at.Addr(), b.dir)
	for name, text := range map[string]string{"host": string(host), "conf": conf, "shadow": testShadow} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(b.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sudo", "sonic-cfggen", "config"} {
		if err := os.WriteFile(filepath.Join(b.dir, "bin", name), fmt.Appendf(nil, sonicScript, b.dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c", `mount --bind "$1/shadow" /etc/shadow && exec /usr/sbin/sshd -D -e -f "$1/conf"`, "sh", b.dir)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	in := bufio.NewReader(log)
	if line, err := in.ReadString('\n'); !strings.HasPrefix(line, "Server listening") {
		t.Fatalf("sshd does not listen: %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, in) }() // ends with the daemon
	b.sw.Address, b.sw.Login.Port = at.Addr(), at.Port()
}

func (b *bench) fact(k fact.Key) (fact.Fact, bool) { f, ok := b.facts[k]; return f, ok }

// given are secrets by reference.
type given map[secret.Ref]string

func (g given) Resolve(r secret.Ref) (secret.Value, error) { return secret.NewValue(g[r]), nil }

// doing is the stage.Run of one step: it does every effect and remembers.
type doing struct {
	step plan.Step
	b    *bench
}

func (d doing) Members() []subject.ID               { return []subject.ID{d.step.Subject} }
func (d doing) Examined() []subject.ID              { return nil }
func (doing) Release(string)                        {}
func (doing) Emit(event.Event)                      {}
func (doing) Attach(string, []byte) (string, error) { return "", nil }

func (d doing) Effect(ctx context.Context, e stage.Effect) error { return e.Do(ctx) }
func (d doing) Clock() clock.Clock                               { return clock.Wall{} }
func (d doing) Fact(k fact.Key) (fact.Fact, bool)                { return d.b.fact(k) }
func (d doing) Blame(_ context.Context, f stage.Finding) error {
	d.b.found = append(d.b.found, f)
	return nil
}

func (d doing) Learn(_ context.Context, fs ...fact.Fact) error {
	for _, f := range fs {
		d.b.facts[f.Key] = f
	}
	return nil
}

// apply runs the step of the leaf.
func (b *bench) apply(ctx context.Context) error {
	st := b.step()
	return b.kind.ApplyStep(ctx, doing{st, b}, b.want.Fabric, st)
}

func (b *bench) observe(ctx context.Context) (stage.Observation, error) {
	st := b.step()
	return b.kind.ObserveStep(ctx, doing{st, b}, b.want.Fabric, st)
}

func (b *bench) step() plan.Step {
	return b.steps[slices.IndexFunc(b.steps, func(s plan.Step) bool { return s.Subject == switchos.Of(b.sw) })]
}

// TestPeerSwitchOverSSH: with a real sshd a leaf is read, patched, read back, saved, and
// conforms from then on; the host key that it showed first is pinned.
func TestPeerSwitchOverSSH(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if o, err := b.observe(t.Context()); err != nil || o.State != stage.Differs || !strings.Contains(o.Evidence, "hostname: sonic -> net-leaf-1") {
		t.Fatalf("before: %+v, %v", o, err)
	}
	if err := b.apply(t.Context()); err != nil {
		t.Fatal(err, b.found)
	}
	if f, ok := b.kind.Preview(remembering{b}, b.step()); !ok || f.Operations == nil || len(f.Operations) > 0 {
		t.Errorf("after it was configured %t, %+v is still to be done", ok, f.Operations)
	}
	if got := string(b.get(t, "patch.json")); got != string(b.want.Patch(b.factory())) {
		t.Errorf("another patch arrived: %.300s", got)
	}
	if got, want := string(b.get(t, "saved.json")), string(b.get(t, "target.json")); got != want {
		t.Error("what was saved is not what runs")
	}
	if o, err := b.observe(t.Context()); err != nil || o.State != stage.Conforms {
		t.Errorf("after: %+v, %v", o, err)
	}
	log := string(b.get(t, "log"))
	if i, j := strings.Index(log, "config checkpoint"), strings.Index(log, "config apply-patch -n -d"); i < 0 || j < i || strings.Contains(log, testPassword) {
		t.Errorf("commands:\n%s", log)
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, "*.cp")); len(left) > 0 || strings.Contains(log, "rollback") {
		t.Errorf("left behind: %v\n%s", left, log)
	}
	line, err := switchos.HostKeyFact.Get(b.facts[switchos.HostKeyFact.Of(switchos.Of(b.sw))])
	if err != nil || !strings.HasPrefix(line, "ssh-ed25519 ") {
		t.Errorf("host key %q, %v", line, err)
	}

	// Another device at the address: its key is not the pinned one.
	other, _, _ := remote.GenerateClientKey()
	f, _ := switchos.HostKeyFact.New(switchos.Of(b.sw), string(ssh.MarshalAuthorizedKey(other.PublicKey())), "")
	b.facts[f.Key] = f
	b.reconnect()
	if err := b.apply(t.Context()); errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), "host key changed: the switch shows") {
		t.Errorf("another host key: %v", err)
	}
	b.sw.HostKey = ssh.FingerprintSHA256(other.PublicKey())
	if err := b.apply(t.Context()); errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), "the site says "+b.sw.HostKey) {
		t.Errorf("a given host key: %v", err)
	}
}

// remembering is what planning sees of the facts.
type remembering struct{ b *bench }

func (r remembering) Fact(k fact.Key) (fact.Fact, bool) { return r.b.fact(k) }

// TestPeerSwitchByKey: a login with a key, and one whose password is wrong.
func TestPeerSwitchByKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	secrets := b.way.Secrets.(given)
	b.way.Secrets = given{b.sw.Login.Password: "wrong", "env:KEY": secrets["env:KEY"]}
	if err := b.apply(t.Context()); errkind.Of(err) != errkind.Auth || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong password: %v", err)
	}
	b.sw.Login.Password, b.sw.Login.Key = "", "env:KEY"
	signer, err := ssh.ParsePrivateKey([]byte(secrets["env:KEY"]))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "authorized"), []byte(remote.AuthorizedKey(signer, "test")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o, err := b.observe(t.Context()); err != nil || o.State != stage.Conforms {
		t.Errorf("after: %+v, %v", o, err)
	}
}

// TestPeerSwitchKeepsOnePortWrong: the port is named, the others are configured and
// saved, and the switch was taken back in between.
func TestPeerSwitchKeepsOnePortWrong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := merged(b.factory(), b.want.Render())
	first["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = "3,5"
	b.put(t, "first", first)
	target := merged(b.factory(), b.want.Without([]string{"Ethernet0"}).Render())
	b.put(t, "target.json", target)
	err := b.apply(t.Context())
	if errkind.Of(err) != errkind.Mismatch || len(b.found) != 1 {
		t.Fatal(err, b.found)
	}
	f := b.found[0]
	if f.Suspects[0].Subject != switchos.Of(b.sw) || f.Suspects[0].Part != "Ethernet0 (r01-u01/rail/0)" || !strings.Contains(f.Cause, "PORT_QOS_MAP|Ethernet0: pfc_enable is 3,5, and should be 3") {
		t.Errorf("%+v", f)
	}
	if string(b.get(t, "saved.json")) != string(target.JSON()) || !strings.Contains(string(b.get(t, "log")), "config rollback") {
		t.Errorf("log:\n%s", b.get(t, "log"))
	}
	now, err := switchos.ObservedFact.Get(b.facts[switchos.ObservedFact.Of(switchos.Of(b.sw))])
	if err != nil || now.Conforms || len(now.Ports) != len(b.want.Ports) || now.Ports["Ethernet0"].Paused != nil || !slices.Equal(now.Ports["Ethernet8"].Paused, []int{3}) {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestPeerSwitchHangs: a command that never ends is ended with the step, and the switch
// is taken back.
func TestPeerSwitchHangs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := os.WriteFile(filepath.Join(b.dir, "hang"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { // the step's deadline passes once the command hangs
		for {
			if raw, err := os.ReadFile(filepath.Join(b.dir, "hung")); err == nil && len(raw) > 0 {
				cancel(context.DeadlineExceeded)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if err := b.apply(ctx); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("%v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b.get(t, "hung"))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("process %d still runs: %v", pid, err)
	}
	if string(b.get(t, "running.json")) != string(b.factory().JSON()) || len(b.found) != 0 {
		t.Errorf("it was not taken back, or somebody was blamed: %+v", b.found)
	}
}

// TestPeerSwitchIsAnother: a switch that calls itself like another one, or that lacks a
// port, is not touched.
func TestPeerSwitchIsAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		change func(sonic.Config)
		want   string
	}{
		{func(c sonic.Config) { c["DEVICE_METADATA"]["localhost"]["hostname"] = "net-leaf-2" }, `calls itself "net-leaf-2", and should be net/leaf-1`},
		{func(c sonic.Config) { delete(c["PORT"], "Ethernet8") }, "has no port Ethernet8"},
	} {
		have := b.factory()
		c.change(have)
		b.put(t, "running.json", have)
		if err := b.apply(t.Context()); errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if strings.Contains(string(b.get(t, "log")), "config ") {
		t.Errorf("it was touched:\n%s", b.get(t, "log"))
	}
}

// TestSwitchSteps: a switch that nodes work through is alone; the plan has no
// secret.
func TestSwitchSteps(t *testing.T) {
	t.Parallel()
	inv, _, _ := Load("../examples/mi300x-roce", inventory.Options{Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)})
	links := roce.Addresses(inv)
	k := switchos.New(roce.New(nil, links...), inv, nil, links)
	for _, used := range []bool{false, true} {
		steps := k.Steps(view(used), inv.Fabrics[0], inv.Nodes, nil)
		if len(steps) != 13 {
			t.Fatalf("%d steps", len(steps))
		}
		units := map[bool]int{false: 1, true: switchos.AtOnce}[used]
		if u := steps[0].Uses; len(u) != 1 || u[0].Units != units || u[0].Resource != "switches/compute" || limits[switchos.Resource] != switchos.AtOnce {
			t.Errorf("used %t: %+v", used, u)
		}
		text, err := json.Marshal(steps)
		if err != nil || strings.Contains(string(text), "SONIC_PASSWORD") {
			t.Errorf("%v, or a secret in the plan", err)
		}
	}
	names := map[string]bool{}
	for _, in := range k.Steps(nil, inv.Fabrics[0], inv.Nodes, nil)[0].Inputs {
		names[in.Name] = true
	}
	if want := []string{"address", "lossless", "mtu", "PORT_QOS_MAP", "BGP_NEIGHBOR"}; slices.ContainsFunc(want, func(n string) bool { return !names[n] }) {
		t.Errorf("inputs %v", slices.Sorted(maps.Keys(names)))
	}
	for _, s := range inv.Switches {
		s.Login = nil
	}
	if steps := switchos.New(roce.New(nil, links...), inv, nil, links).Steps(nil, inv.Fabrics[0], inv.Nodes, nil); len(steps) != 0 {
		t.Errorf("without logins: %d steps", len(steps))
	}
}

// view has every fact, or none.
type view bool

func (v view) Fact(fact.Key) (fact.Fact, bool) { return fact.Fact{}, bool(v) }
