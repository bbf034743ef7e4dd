// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/images/modsign/mok"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/agent"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/oob"
)

const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000001"

// site is one node as the inventory says it.
func site() *inventory.Inventory {
	h := &inventory.Hardware{Name: "box", Product: "box", Boot: inventory.BootBIOS, BootTimeout: 3 * time.Second,
		Disks: []inventory.Disk{{Name: "os", Count: 1, Size: unit.Limit[unit.Bytes]{Op: unit.AtLeast, Value: 1 << 30}}},
		NICs: []inventory.NIC{{Name: "mgmt", Boot: true, Ports: []inventory.NICPort{{PCI: "0000:00:03.0"}}},
			{Name: "rail", Ports: []inventory.NICPort{{PCI: "0000:00:04.0", Panel: "rail 0"}}}}}
	n := &inventory.Node{Name: "n1", Serial: "SN1", UUID: "00000000-0000-4000-8000-000000000001", BootMAC: addr.MAC{2, 0, 0, 0, 0, 1},
		Address: netip.MustParseAddr("10.0.0.11"), Hardware: h, Rack: &inventory.Rack{Name: "r1"}, Unit: 1,
		BootNetwork: &inventory.Network{Name: "boot", CIDR: netip.MustParsePrefix("10.0.0.0/24")},
		Image:       &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os", Decl: hcl.Range{Filename: "site.hcl"}}, Release: "bookworm"},
		Disks:       &inventory.DiskLayout{Name: "os", On: "os", RAID: -1},
		BMC:         inventory.BMCTarget{Protocol: "ipmi", Address: netip.MustParseAddr("10.1.0.11"), Port: 623}}
	return &inventory.Inventory{Site: inventory.Site{Name: "s", MaxErase: 1}, Nodes: []*inventory.Node{n}, Images: []*inventory.Image{n.Image}}
}

// chassis is a node with its BMC: powering it on boots an agent that talks to
// the real hub, and a reboot from the agent boots its disk.
type chassis struct {
	t        *testing.T
	boots    *Boots
	url      func() string
	serial   string // as DMI and BMC say it
	pci      []wire.PCI
	diskPCI  string // of the controller of the disk
	nics     []wire.NIC
	content  string // of the disk
	fails    error  // what a write ends with once it has erased the disk
	store    state.Store
	silent   bool // never netboots
	lasting  bool // the BMC keeps a boot device for every boot, and cannot clear it
	device   bmc.BootFrom
	alone    func() BootNetwork
	console  []string // what it printed
	edit     func(*inventory.Node)
	signer   *modsign.Certificate
	secure   *wire.SecureBoot
	enrols   error // how the agent answers a request to shim
	terminal typeAt
	before   func(context.Context, stage.Run, plan.Step) stage.Run // each step of the install stage; nil: nothing
	mu       sync.Mutex
	power    bmc.PowerState
	effects  []string
	writes   int
	marker   string
	running  string     // marker of the system that runs from disk
	root     *wire.Disk // that it runs from; nil: the node cannot tell
	order    *wire.BootOrder
	first    string // boot order that was asked for
	stop     context.CancelFunc
	finished sync.WaitGroup
}

func (c *chassis) note(s string) { c.effects = append(c.effects, s) }

func (c *chassis) PowerState(context.Context) (bmc.PowerState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.power, nil
}

func (c *chassis) SetBoot(_ context.Context, b bmc.Boot) (bmc.Outcome, error) {
	if c.lasting && b.Device == bmc.None {
		return bmc.Outcome{}, errkind.New(errkind.Refused, "None is no target")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.device = b.Device
	if c.lasting {
		return bmc.Outcome{Verdict: bmc.Verified, Persistent: b.Once}, nil
	}
	return bmc.Outcome{Verdict: bmc.Unverifiable, Evidence: "flag not valid"}, nil
}

func (c *chassis) Identity(context.Context) (bmc.Identity, error) {
	return bmc.Identity{ProductSerial: c.serial}, nil
}

func (c *chassis) SetPower(_ context.Context, a bmc.PowerAction) (bmc.Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(a.String())
	c.power, c.running = bmc.PowerOn, ""
	if c.stop != nil { // the agent that ran
		c.stop()
	}
	if !c.silent {
		c.netboot()
	}
	return bmc.Outcome{Verdict: bmc.Verified, Sent: 1}, nil
}

// netboot runs the agent of the open attempt, as firmware and ramdisk would.
func (c *chassis) netboot() {
	at, ok := c.boots.Attempt("n1")
	if !ok {
		c.t.Error("the node was powered before its attempt was open")
		return
	}
	a, err := agent.New(agent.Config{BootID: "b", Poll: time.Second, Client: httptest.NewServer(nil).Client(),
		Boot:     wire.Boot{Version: wire.Version, Node: "n1", Attempt: at.ID, Token: c.boots.Token(at.ID), Controller: c.url()},
		Identity: func() wire.Identity { return wire.Identity{Product: "box", Serial: c.serial} },
		Handlers: map[wire.TaskKind]agent.Handler{wire.Inspect: c.inspect, wire.Write: c.write, wire.Configure: c.configure, wire.Enrol: c.enrol}})
	if err != nil {
		c.t.Error(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.finished.Go(func() {
		if _, err := a.Run(ctx); err == nil {
			c.mu.Lock()
			c.running = c.marker
			c.mu.Unlock()
		}
	})
}

func (c *chassis) inspect(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return wire.Hardware{Identity: wire.Identity{Product: "box", Serial: c.serial, UUID: "00000000-0000-4000-8000-000000000001"}, NICs: c.nics, PCI: c.pci, SecureBoot: c.secure,
		Disks: []wire.Disk{{Name: "vda", PCI: c.diskPCI, Serial: "D1", Size: 2 << 30, Content: c.content, Marker: c.marker}}}, nil
}

func (c *chassis) enrol(_ context.Context, raw json.RawMessage, _ func(wire.Progress)) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("enrol")
	var p wire.EnrolParams
	if err := json.Unmarshal(raw, &p); err != nil || len(p.List) == 0 || len(p.Auth) != 32 || p.Countdown != mok.Countdown {
		c.t.Errorf("the agent is asked for %s: %v", raw, err)
	}
	return struct{}{}, c.enrols
}

func (c *chassis) write(_ context.Context, raw json.RawMessage, _ func(wire.Progress)) (any, error) {
	var p wire.WriteParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.content != "" && !p.AllowData && c.marker != p.Marker {
		return nil, errkind.New(errkind.Refused, "disk holds %s", c.content)
	}
	if c.marker == p.Marker {
		return wire.WriteResult{Already: true}, nil
	}
	c.writes++
	c.marker, c.content = p.Marker, "GPT"
	if c.fails != nil {
		return nil, c.fails
	}
	return wire.WriteResult{Written: 1}, nil
}

func (c *chassis) configure(_ context.Context, raw json.RawMessage, _ func(wire.Progress)) (any, error) {
	var p wire.ConfigureParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = p.BootOrder
	return wire.ConfigureResult{BootOrder: c.order, HostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1v8tQ0uX3mVZ8m0nU0r1qJm2p9lq2b3a4c5d6e7f8g root@n1"}, nil
}

// Run implements onnode.Nodes: the installed system's agent.
func (c *chassis) Run(context.Context, string, onnode.Command) (onnode.Output, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == "" {
		return onnode.Output{}, errkind.New(errkind.Unreachable, "no SSH")
	}
	out, err := json.Marshal(System{Kernel: "6.1", Marker: c.running, Root: c.root, BootOrder: c.order})
	return onnode.Output{Stdout: out}, err
}

type fixedImages struct{ bad error }

func (f fixedImages) Image(string) (Image, error)          { return Image{Digest: digest}, nil }
func (f fixedImages) Verify(context.Context, string) error { return f.bad }

// bringUp plans and applies with the real engine, hub and agent.
func bringUp(t *testing.T, c *chassis, images Images, opt plan.Options, seen []BootEvent) (apply.Result, *plan.Plan) {
	t.Helper()
	inv := site()
	if c.edit != nil {
		c.edit(inv.Nodes[0])
	}
	boots := NewBoots([]byte(strings.Repeat("k", 32)), []netboot.Client{{Node: "n1", MACs: []addr.MAC{{2, 0, 0, 0, 0, 1}}, Address: netip.MustParsePrefix("127.0.0.1/8")}}, nil)
	h := hub.New(hub.Config{Grants: boots})
	srv := httptest.NewServer(h.Handler())
	c.t, c.boots, c.url = t, boots, func() string { return srv.URL }
	t.Cleanup(func() {
		if c.stop != nil {
			c.stop()
		}
		c.finished.Wait()
		srv.Close()
	})
	w := Dependencies{BMC: func(context.Context, string) (Control, error) { return c, nil }, Hub: h, Boots: boots, Images: images, Nodes: c,
		Evidence: func(string, time.Time) []BootEvent { return seen }, SSHKey: "ssh-ed25519 AAAA", BootNetwork: c.alone,
		Printed: func(string) ([]string, int) { return c.console, len(c.console) }, Signer: c.signer, Type: c.terminal}
	in := New(inv, map[string]string{"os": digest}, w)
	bm := oob.New(inv, func(context.Context, string) (oob.BMC, error) { return c, nil })
	store, err := state.Open(filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	c.store = store
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	fence, err := store.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	p := planOf(t, opt, store, bm, in)
	stages := map[string]stage.Stage{bm.Name(): bm, in.Name(): in}
	if c.before != nil {
		stages[in.Name()] = interposed{in, c.before}
	}
	res, err := apply.Run(ctx, apply.Config{Plan: p, Store: store, Fence: fence, Bus: event.NewBus(1000), EvidenceDir: t.TempDir(), MaxErase: opt.MaxErase,
		Stages: stages, Capacity: map[string]int{"inrush/": 1, "streams": 1, "bmc/": 1}})
	if err != nil {
		t.Fatal(err)
	}
	return res, planOf(t, plan.Options{}, store, bm, in)
}

// interposed is a stage of which a test sees each step before it is applied.
type interposed struct {
	stage.Stage
	before func(context.Context, stage.Run, plan.Step) stage.Run
}

func (i interposed) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	return i.Stage.Apply(ctx, i.before(ctx, run, st), st)
}

func planOf(t *testing.T, opt plan.Options, store state.Store, stages ...stage.Stage) *plan.Plan {
	t.Helper()
	prior, err := state.ReadPrior(context.Background(), store)
	if err != nil {
		t.Fatal(err)
	}
	var steps []plan.Step
	for _, s := range stages {
		got, diags := s.Plan(prior)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		steps = append(steps, got...)
	}
	p, err := plan.Diff(steps, prior, opt)
	if err != nil {
		t.Fatal(err)
	}
	p.ID, p.Created = "p1", time.Now()
	return p
}

func whole() *chassis {
	return &chassis{serial: "SN1", power: bmc.PowerOff, nics: []wire.NIC{{MAC: addr.MAC{2, 0, 0, 0, 0, 1}, PCI: "0000:00:03.0"}, {PCI: "0000:00:04.0"}}}
}

func TestFromPowerOffToASystemThatAnswers(t *testing.T) {
	t.Parallel()
	c := whole()
	res, next := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
	if res.Outcome != state.RunDone {
		t.Fatalf("outcome %s: %+v", res.Outcome, res.Steps)
	}
	if got := strings.Join(c.effects, " "); got != "on" || c.writes != 1 {
		t.Errorf("power effects %q and %d writes; want one on and one write", got, c.writes)
	}
	if !next.Empty() {
		t.Errorf("a second plan has %d steps: %v", len(next.Steps), next.Steps)
	}
	if _, open := c.boots.Attempt("n1"); open {
		t.Error("the boot attempt is still open: the node would netboot into the installer again")
	}
}

// TestAttemptOfAnotherImage: a boot attempt that was opened for another image is not continued: its
// write is journaled as done, and the node would be accepted with the image of before.
func TestAttemptOfAnotherImage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		image string
		again bool // it is continued
	}{
		"the same":         {digest, true},
		"another":          {"sha256:other", false},
		"one not recorded": {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := newAttempt("n1", PowerCycle, time.Now())
			old.Image = c.image
			node := whole()
			node.power = bmc.PowerOn
			node.before = func(ctx context.Context, run stage.Run, st plan.Step) stage.Run {
				if st.ID == StepOf("n1", Netboot) {
					if err := learnFact(ctx, run, AttemptFact, site().Nodes[0], old); err != nil {
						t.Error(err)
					}
				}
				return run
			}
			res, _ := bringUp(t, node, fixedImages{}, plan.Options{MaxErase: 1}, nil)
			at, _ := node.boots.Current("n1")
			if res.Outcome != state.RunDone || node.writes != 1 || strings.Join(node.effects, " ") != "cycle" {
				t.Errorf("outcome %s, %d writes, %q", res.Outcome, node.writes, node.effects)
			}
			if (at.ID == old.ID) != c.again || !c.again && at.Image != digest {
				t.Errorf("the attempt is %+v, before it was %s", at, old.ID)
			}
		})
	}
}

// TestLastingBootIsPutBack: a BMC that keeps network boot for every boot is told to
// boot the disk before the node is sent to it.
func TestLastingBootIsPutBack(t *testing.T) {
	t.Parallel()
	c := whole()
	c.lasting = true
	res, _ := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
	if res.Outcome != state.RunDone || c.device != bmc.Disk {
		t.Errorf("outcome %s: the BMC boots %s: %+v", res.Outcome, c.device, res.Steps)
	}
	c = whole()
	if res, _ := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil); res.Outcome != state.RunDone || c.device != bmc.PXE {
		t.Errorf("a BMC that keeps it once was told more: %s, %s", c.device, res.Outcome)
	}
}

func TestNothingIsErasedWhen(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		bend  func(*chassis)
		bad   error
		cause string
	}{
		{"the BMC is another node's", func(c *chassis) { c.serial = "SN2" }, nil, "BMC of another node"},
		{"a NIC is missing", func(c *chassis) { c.nics = c.nics[:1] }, nil, "hardware is not what"},
		{"the disk holds data", func(c *chassis) { c.content = "ext4" }, nil, "which disk to erase is not certain"},
		{"the node runs and is not ours", func(c *chassis) { c.power = bmc.PowerOn }, nil, "powered on"},
		{"the image is not whole", func(*chassis) {}, errkind.New(errkind.Corrupt, "digest differs"), "digest differs"},
		{"the node never asks for DHCP", func(c *chassis) { c.silent = true }, nil, "never asked for an address"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := whole()
			tc.bend(c)
			res, _ := bringUp(t, c, fixedImages{tc.bad}, plan.Options{MaxErase: 1}, nil)
			if c.writes != 0 {
				t.Error("the disk was written")
			}
			n := res.Nodes[0]
			if n.Outcome != apply.NodeQuarantined || n.Finding == nil {
				t.Fatalf("node is %s: %+v", n.Outcome, n)
			}
			if !strings.Contains(n.Finding.Cause, tc.cause) || n.Finding.Action == "" {
				t.Errorf("cause %q, action %q; want cause with %q and an action", n.Finding.Cause, n.Finding.Action, tc.cause)
			}
		})
	}
}

// TestReplaceErasesItsOwn: a reinstall erases the node's own system, and not what
// somebody else has left on the only disk that fits.
func TestReplaceErasesItsOwn(t *testing.T) {
	t.Parallel()
	replace := plan.Options{MaxErase: 1, Replace: map[string]bool{"n1": true}}
	c := whole()
	c.content, c.marker, c.power = "GPT; p1 ext4", "n1/n1-0/write", bmc.PowerOn
	res, _ := bringUp(t, c, fixedImages{}, replace, nil)
	if res.Outcome != state.RunDone || c.writes != 1 || strings.Join(c.effects, " ") != "cycle" {
		t.Errorf("outcome %s, %d writes, power %v", res.Outcome, c.writes, c.effects)
	}
	c = whole()
	c.content, c.power = "ext4", bmc.PowerOn
	res, _ = bringUp(t, c, fixedImages{}, replace, nil)
	if res.Outcome == state.RunDone || c.writes != 0 || len(res.Findings) != 1 || !strings.Contains(res.Findings[0].Evidence[0], "holds ext4") {
		t.Errorf("outcome %s, %d writes, %+v", res.Outcome, c.writes, res.Findings)
	}
}

// TestDiagnoseTagged: where the boot network is tagged, the VLAN is named where it may be the cause.
func TestDiagnoseTagged(t *testing.T) {
	t.Parallel()
	of := func(proto netboot.Proto, what, detail string) BootEvent {
		return BootEvent{netboot.Evidence{Proto: proto, What: what, Detail: detail}}
	}
	asked, loaded := of("dhcp", "ack", "gets 10.30.0.9"), of("tftp", "done", "snponly.efi")
	n := &inventory.Node{Name: "n1", Hardware: &inventory.Hardware{NICs: []inventory.NIC{{Name: "mgmt", Boot: true, Ports: []inventory.NICPort{{}}}}}, BootNetwork: &inventory.Network{Name: "boot", VLAN: 30}}
	for _, c := range []struct {
		seen []BootEvent
		want string
	}{
		{nil, "Look whether the firmware has VLAN 30 for the NIC"},
		{[]BootEvent{asked}, "Check TFTP"},
		{[]BootEvent{asked, loaded}, "Look on the console whether iPXE asks on net0-30"},
		{[]BootEvent{asked, loaded, of("http", "initrd.end", "GET initrd")}, "Look whether the switch port is a tagged member of VLAN 30"},
	} {
		if d := Diagnose(n, c.seen, nil); !strings.HasPrefix(d.Action, c.want) {
			t.Errorf("%v: %+v", c.seen, d)
		}
	}
	n.BootNetwork = &inventory.Network{Name: "boot"}
	if d := Diagnose(n, nil, nil); strings.Contains(d.Action, "VLAN") {
		t.Errorf("without a VLAN: %+v", d)
	}
}

func TestDiagnoseNamesTheFurthestStage(t *testing.T) {
	t.Parallel()
	n := site().Nodes[0]
	saw := func(p boot.Proto, what string) BootEvent { return BootEvent{boot.Evidence{Proto: p, What: what}} }
	for _, c := range []struct {
		seen []BootEvent
		want string
	}{
		{nil, "never asked"},
		{[]BootEvent{saw(boot.DHCP, "offer")}, "never fetched its loader"},
		{[]BootEvent{saw(boot.DHCP, "ack"), saw(boot.TFTP, "done")}, "never asked for the boot script"},
		{[]BootEvent{saw(boot.DHCP, "ack"), saw(boot.IPXE, "script")}, "never fetched the kernel"},
		{[]BootEvent{saw(boot.DHCP, "ack"), saw(boot.HTTP, "loader")}, "never asked for the boot script"},
		{[]BootEvent{saw(boot.IPXE, "script"), saw(boot.HTTP, "kernel.start")}, "the kernel and did not come to its end"},
		{[]BootEvent{saw(boot.IPXE, "script"), saw(boot.HTTP, "kernel.start"), saw(boot.HTTP, "kernel.end")}, "never its initrd"},
		{[]BootEvent{saw(boot.HTTP, "kernel.end"), saw(boot.HTTP, "initrd.start")}, "the initrd of the install ramdisk and did not"},
		{[]BootEvent{saw(boot.IPXE, "script"), saw(boot.HTTP, "kernel.end"), saw(boot.HTTP, "initrd.end")}, "agent never called"},
		{[]BootEvent{{boot.Evidence{Proto: boot.DHCP, Refused: true, Detail: "UUID differs"}}}, "refused: UUID differs"},
	} {
		if d := Diagnose(n, c.seen, nil); !strings.Contains(d.Cause, c.want) || d.Action == "" || len(d.Evidence) == 0 {
			t.Errorf("%v: %+v; want cause with %q", c.seen, d, c.want)
		}
	}
}
