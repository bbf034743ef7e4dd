// SPDX-License-Identifier: Apache-2.0

//go:build hostile

package provision

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
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
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/artifacts"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/keys"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/services"
)

// The boot network of the test. Nodes 101 and 102 are nodes of the site that attack.
const (
	hostileNodes   = 100
	hostileKnown   = hostileNodes + 1
	hostileOther   = hostileNodes + 2 // has connections only
	hostileStolen  = hostileNodes     // whose address is stolen
	hostileImage   = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	hostileKernel  = 8 << 20
	hostileInitrd  = 2 << 20
	hostileMark    = "@@ "
	hostileBootEnd = "IRONRAIL-BOOT"
)

func hostileMAC(i int) addr.MAC     { return addr.MAC{2, 0, 0x5e, 0, byte(i >> 8), byte(i)} }
func hostileAddr(i int) netip.Addr  { return netip.AddrFrom4([4]byte{10, 99, 1, byte(i)}) }
func hostileController() netip.Addr { return netip.AddrFrom4([4]byte{10, 99, 0, 1}) }
func hostileName(i int) string      { return fmt.Sprintf("n%03d", i) } // in the order of the inventory
func hostileSerial(i int) string    { return fmt.Sprintf("SN%d", i) }
func hostileNumber(name string) (i int) {
	fmt.Sscanf(name, "n%d", &i)
	return i
}

// hostileReport is what the controller's process says at its end.
type hostileReport struct {
	Done     []string          `json:"done"`
	Failed   map[string]string `json:"failed"` // cause of each node that is not done
	HostKeys []string          `json:"host_keys"`
	Seen     []string          `json:"seen"` // what the boot services saw of unknown clients, of node 101 and of the stolen one
	Records  int               `json:"told"` // records in all
	CPU      float64           `json:"cpu"`  // seconds, from the first power-on
	MiB      int               `json:"mib"`  // most memory at once
	Files    int               `json:"files"`
	DHCP     uint64            `json:"dhcp"`  // datagrams read
	Found    []string          `json:"found"` // causes of the findings about the site
}

// hostileSite is a site of 100 nodes.
func hostileSite() *inventory.Inventory {
	h := &inventory.Hardware{Name: "box", Product: "box", Boot: inventory.BootUEFI, BootTimeout: 90 * time.Second,
		Disks: []inventory.Disk{{Name: "os", Count: 1, Size: unit.Limit[unit.Bytes]{Op: unit.AtLeast, Value: 1 << 30}}},
		NICs:  []inventory.NIC{{Name: "mgmt", Boot: true, Ports: []inventory.NICPort{{PCI: "0000:00:03.0"}}}}}
	boots := &inventory.Network{Name: "boot", CIDR: netip.MustParsePrefix("10.99.0.0/16"), DHCP: inventory.DHCP{Mode: inventory.DHCPAuthoritative}}
	inv := &inventory.Inventory{Site: inventory.Site{Name: "s", MaxErase: hostileNodes}, Networks: []*inventory.Network{boots},
		Controllers: []*inventory.Controller{{Name: "c", Address: hostileController(), Interface: "eth0"}},
		Images:      []*inventory.Image{{Block: inventory.Block{Kind: "debian", Name: "os", Decl: hcl.Range{Filename: "site.hcl"}}, Release: "12"}}}
	for i := 1; i <= hostileNodes; i++ {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: hostileName(i), Serial: hostileSerial(i), BootMAC: hostileMAC(i), Address: hostileAddr(i),
			Hardware: h, Rack: &inventory.Rack{Name: "r1"}, Unit: 1, BootNetwork: boots, Image: inv.Images[0], Disks: &inventory.DiskLayout{Name: "os", On: "os", RAID: -1},
			BMC: inventory.BMCTarget{Protocol: "ipmi", Address: netip.MustParseAddr("10.98.0.1"), Port: 623}})
	}
	return inv
}

// hostileRack is the hardware as the controller reaches it: BMCs whose power-on is a
// line to the process that boots nodes, and installed systems.
type hostileRack struct {
	mu      sync.Mutex
	on      map[string]bool
	running map[string]string // marker of the system, by node
}

// heard reads what the process of the nodes says: "up n1 MARKER".
func (r *hostileRack) heard(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) >= 3 && f[0] == "up" {
			r.mu.Lock()
			r.running[f[1]] = strings.Join(f[2:], " ")
			r.mu.Unlock()
		}
	}
}

func (r *hostileRack) control(_ context.Context, node string) *hostileBMC {
	return &hostileBMC{r, node}
}

// Run implements onnode.Nodes.
func (r *hostileRack) Run(_ context.Context, node string, _ onnode.Command) (onnode.Output, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[node] == "" {
		return onnode.Output{}, errkind.New(errkind.Unreachable, "no SSH")
	}
	out, err := json.Marshal(install.System{Kernel: "6.1", Marker: r.running[node]})
	return onnode.Output{Stdout: out}, err
}

type hostileBMC struct {
	r    *hostileRack
	node string
}

func (b *hostileBMC) PowerState(context.Context) (bmc.PowerState, error) {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	if b.r.on[b.node] {
		return bmc.PowerOn, nil
	}
	return bmc.PowerOff, nil
}

func (b *hostileBMC) SetBoot(context.Context, bmc.Boot) (bmc.Outcome, error) {
	return bmc.Outcome{Verdict: bmc.Verified}, nil
}

func (b *hostileBMC) Identity(context.Context) (bmc.Identity, error) {
	return bmc.Identity{ProductSerial: hostileSerial(hostileNumber(b.node))}, nil
}

func (b *hostileBMC) SetPower(context.Context, bmc.PowerAction) (bmc.Outcome, error) {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.r.on[b.node] = true
	fmt.Printf("%spower %s\n", hostileMark, b.node)
	return bmc.Outcome{Verdict: bmc.Verified, Sent: 1}, nil
}

type hostileImages struct{}

func (hostileImages) Image(string) (install.Image, error) {
	return install.Image{Digest: hostileImage}, nil
}
func (hostileImages) Verify(context.Context, string) error { return nil }

// hostileRamdisk is a kernel and an initrd, of zeroes, in files as those of images
// are; the initrd ends with the boot file.
type hostileRamdisk struct{ dir string }

func (r hostileRamdisk) Open(string) (install.Segment, []install.Segment, func(), error) {
	k, err := os.Open(filepath.Join(r.dir, "vmlinuz"))
	if err != nil {
		return nil, nil, nil, err
	}
	return io.NewSectionReader(k, 0, hostileKernel), []install.Segment{io.NewSectionReader(k, 0, hostileInitrd)}, func() { k.Close() }, nil
}

func (r hostileRamdisk) Own(b wire.Boot) ([]byte, error) {
	out, err := json.Marshal(b)
	return append([]byte(hostileBootEnd), out...), err
}

// TestHostileController is the controller's process of TestHostile.
func TestHostileController(t *testing.T) {
	if os.Getenv("IRONRAIL_HOSTILE") != "controller" {
		t.Skip("runs as a process of TestHostile")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	for name, size := range map[string]int{"snponly.efi": 64 << 10, "undionly.kpxe": 64 << 10, "vmlinuz": hostileKernel} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := keys.Load(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	inv := hostileSite()
	kept, err := artifacts.New(inv, dir, nil).Open(loaded.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	site := &Site{Inv: inv, Keys: loaded, Artifacts: kept, state: dir, loaders: dir, network: network.OS{}}
	cs, console := services.ListClients(site.Inv, nil)
	cs = append(cs, netboot.Client{Node: hostileName(hostileKnown), MACs: []addr.MAC{hostileMAC(hostileKnown)}, Address: netip.PrefixFrom(hostileAddr(hostileKnown), 16)})
	cs = append(cs, netboot.Client{Node: hostileName(hostileOther), MACs: []addr.MAC{hostileMAC(hostileOther)}, Address: netip.PrefixFrom(hostileAddr(hostileOther), 16)})
	boots := install.NewBoots(loaded.Boot, cs, console)
	own := hostileName(hostileKnown) + "-0000"
	boots.Set(install.Attempt{ID: own, Node: hostileName(hostileKnown), Phase: install.Open, Opened: time.Now(), Expires: time.Now().Add(time.Hour)})
	bus := event.NewBus(100_000)
	saw := services.NewBootLog(bus)
	v, err := services.Open(ctx, site.servicesConfig(saw, boots, hostileRamdisk{dir}))
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := v.Serve(serving); err != nil {
			t.Error(err)
		}
	})
	rack := &hostileRack{on: map[string]bool{}, running: map[string]string{}}
	go rack.heard(os.Stdin) // ends with the process
	fmt.Printf("%sown %s %s\n", hostileMark, own, boots.Token(own))
	report := hostileApply(ctx, t, site, v, saw, bus, rack)
	report.DHCP = v.DHCPStats().Received
	stop()
	wg.Wait()
	report.Seen = hostileSeen(saw)
	out, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%send %s\n", hostileMark, out)
}

// hostileSeen is what was recorded of attackers.
func hostileSeen(saw *services.BootLog) (out []string) {
	all := saw.Unknown()
	for _, i := range []int{hostileKnown, hostileOther, hostileStolen} {
		all = append(all, saw.Of(hostileName(i), time.Time{})...)
	}
	for _, s := range all {
		out = append(out, fmt.Sprintf("%s %s %s %s", s.Node, s.Address, s.MAC, s))
	}
	return out
}

// hostileApply brings the site up and measures this process meanwhile.
func hostileApply(ctx context.Context, t *testing.T, site *Site, v *services.Services, saw *services.BootLog, bus *event.Bus, rack *hostileRack) (r hostileReport) {
	st, err := state.Open(filepath.Join(site.state, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	fence, err := st.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	w := install.Dependencies{BMC: func(ctx context.Context, node string) (install.Control, error) { return rack.control(ctx, node), nil },
		Hub: v.Hub(), Boots: v.Boots(), Images: hostileImages{}, Nodes: rack, Evidence: saw.Of, OtherOwner: v.OtherOwner(), SSHKey: "ssh-ed25519 AAAA"}
	in := install.New(site.Inv, map[string]string{"os": hostileImage}, w)
	bm := oob.New(site.Inv, func(ctx context.Context, node string) (oob.BMC, error) { return rack.control(ctx, node), nil })
	prior, err := state.ReadPrior(ctx, st)
	if err != nil {
		t.Fatal(err)
	}
	var steps []plan.Step
	for _, s := range []stage.Stage{bm, in} {
		got, diags := s.Plan(prior)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		steps = append(steps, got...)
	}
	p, err := plan.Diff(steps, prior, plan.Options{MaxErase: hostileNodes})
	if err != nil {
		t.Fatal(err)
	}
	p.ID, p.Created = "p1", time.Now()
	files := hostileFiles(ctx)
	before := cputime.Used()
	res, err := hostileExecute(ctx, v, apply.Config{Plan: p, Store: st, Fence: fence, Bus: bus, EvidenceDir: filepath.Join(site.state, "evidence"),
		Stages: map[string]stage.Stage{bm.Name(): bm, in.Name(): in}, Capacity: map[string]int{"inrush/": 20, "streams": 20, "bmc/": 20}, EraseApproved: hostileNodes})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range res.Findings {
		if f.Suspects[0].Subject.Kind == subject.Site {
			r.Found = append(r.Found, f.Cause)
		}
	}
	r.CPU, r.MiB, r.Files, r.Failed = (cputime.Used() - before).Seconds(), peakMiB(), files(), map[string]string{}
	facts, err := state.ReadFactsNamed(ctx, st, string(install.HostKeyFact))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range res.Nodes {
		if _, ok := facts[install.HostKeyFact.Of(subject.OfNode(n.Name))]; ok {
			r.HostKeys = append(r.HostKeys, n.Name)
		}
		switch {
		case n.Outcome == apply.NodeDone:
			r.Done = append(r.Done, n.Name)
		case n.Finding != nil:
			r.Failed[n.Name] = n.Finding.Cause
		default:
			r.Failed[n.Name] = string(n.Outcome)
		}
	}
	return r
}

// hostileExecute applies a plan, with the findings that the services make.
func hostileExecute(ctx context.Context, v *services.Services, c apply.Config) (apply.Result, error) {
	x, err := apply.New(ctx, c)
	if err != nil {
		return apply.Result{}, err
	}
	reporting, stop := context.WithCancel(ctx)
	defer stop()
	go v.ReportFindings(reporting, x.Report) // ends with the run
	return x.Run(ctx)
}

// hostileFiles counts open descriptors ten times a second; its result says the most.
func hostileFiles(ctx context.Context) func() int {
	ctx, stop := context.WithCancel(ctx)
	most, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			all, _ := os.ReadDir("/proc/self/fd")
			most = max(most, len(all))
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() int {
		stop()
		<-done
		return most
	}
}

// peakMiB is the most memory that this process had (VmHWM).
func peakMiB() (mib int) {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			mib = kib >> 10
		}
	}
	return mib
}
