// SPDX-License-Identifier: Apache-2.0

package nics

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/install"
)

// value is what the flash of a card has, and what is in force.
type value struct{ next, current int }

// rack is one node with its cards and its BMC.
type rack struct {
	onnodetest.Nodes
	program string // that is installed
	cards   map[string]map[string]*value
	types   map[string]string // of cards that are no ConnectX-7
	locked  map[string]string // settings of a card that are for reading
	lost    bool              // writes are answered with success and lost
	stuck   bool              // what is set is never in force
	silent  bool              // the firmware does not say what is in force
	boots   int
	on      bool
	deaf    bool   // the system ignores the power button
	hangs   string // the command of a card that does not end
	about   string // what cards say of themselves
	hidden  bool   // a card that is split shows no further functions
	grows   bool   // one that is split has a link type of port 2, InfiniBand
	presses []string
}

func newRack() *rack {
	r := &rack{program: "mlxconfig", on: true, cards: map[string]map[string]*value{}, types: map[string]string{}}
	for _, pci := range []string{"0000:18:00.0", "0000:2a:00.0"} {
		r.cards[pci] = map[string]*value{"LINK_TYPE_P1": {1, 1}, "LINK_TYPE_P2": {1, 1}, romPXE: {1, 1}, romX86: {1, 1}, romARM: {0, 0}}
	}
	r.Rules = []onnodetest.Rule{r.answer}
	return r
}

func (r *rack) answer(ctx context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
	switch {
	case !r.on:
		return onnode.Output{}, errkind.New(errkind.Unreachable, "no route to host"), true
	case c.Line() == "cat /proc/sys/kernel/random/boot_id":
		return onnode.Output{Stdout: fmt.Appendf(nil, "boot-%d\n", r.boots)}, nil, true
	case strings.HasSuffix(c.Line(), "/vendor"):
		address := strings.Split(c.Argv[1], "/")[5]
		_, function, _ := strings.Cut(address, ".")
		n, _ := strconv.Atoi(function)
		ports := 1
		for name, v := range r.cards[strings.TrimSuffix(address, function)+"0"] {
			if strings.HasPrefix(name, "MODULE_SPLIT_M0[") && v.current < 255 {
				ports = max(ports, v.current)
			}
		}
		if n >= ports || r.hidden {
			return onnode.Output{Exit: 1, Stderr: []byte("cat: " + c.Argv[1] + ": No such file or directory\n")}, nil, true
		}
		return onnode.Output{Stdout: []byte("0x15b3\n")}, nil, true
	case strings.HasSuffix(c.Line(), "/vpd"):
		return onnode.Output{Stdout: vpd}, nil, true
	case c.Argv[0] != r.program:
		return onnode.Output{Exit: onnode.NoProgram, Stderr: []byte("sh: 1: " + c.Argv[0] + ": not found\n")}, nil, true
	}
	if r.hangs != "" && strings.Contains(c.Line(), r.hangs) {
		<-ctx.Done()
		return onnode.Output{}, ctx.Err(), true
	}
	card := r.cards[c.Argv[2]]
	if card == nil {
		return onnode.Output{Exit: 3, Stdout: []byte("-E- Failed to open the device\n")}, nil, true
	}
	if c.Argv[3] == "-y" {
		for _, set := range c.Argv[5:] {
			asked, text, _ := strings.Cut(set, "=")
			for _, name := range elementsOf(asked) {
				if card[name] == nil {
					return onnode.Output{Exit: 3, Stdout: fmt.Appendf(nil, "-E- The Device doesn't support %s parameter\n", name)}, nil, true
				}
				if !r.lost {
					n, _ := strconv.ParseInt(text, 16, 32)
					card[name].next = int(n)
				}
			}
		}
		return onnode.Output{Stdout: []byte("Applying... Done!\n-I- Please reboot machine to load new configurations.\n")}, nil, true
	}
	return onnode.Output{Stdout: []byte(r.show(c.Argv[2], c.Argv[5:]))}, nil, true
}

// elementsOf are the names that one with a range stands for.
func elementsOf(asked string) (list []string) {
	var array string
	var low, high int
	if n, _ := fmt.Sscanf(strings.NewReplacer("[", " ", "..", " ", "]", "").Replace(asked), "%s %d %d", &array, &low, &high); n < 3 {
		return []string{asked}
	}
	for i := low; i <= high; i++ {
		list = append(list, fmt.Sprintf("%s[%d]", array, i))
	}
	return list
}

func (r *rack) show(pci string, names []string) string {
	kind := r.types[pci]
	if kind == "" {
		kind = "ConnectX7"
	}
	text := "\nDevice #1:\n----------\n\nDevice type:        " + kind + "\nName:               MCX755106AS-HEA_Ax\nDescription:        " + cmp.Or(r.about, "a card") + "\nDevice:             " + pci + "\n\nConfigurations:      Default   Current    Next Boot\n"
	if r.silent {
		text = strings.Replace(text, "Default   Current    ", "", 1)
	}
	if r.cards[pci]["MODULE_SPLIT_M0[0]"] != nil && len(names) == 0 {
		text += "        MODULE_SPLIT_M0   Array[0..15]" + strings.Repeat("   Array[0..15]", 2*intOf(!r.silent)) + "\n"
	}
	asked := map[string]bool{}
	for _, name := range names {
		for _, x := range elementsOf(name) {
			asked[x] = true
		}
	}
	for name, v := range r.cards[pci] {
		if strings.Contains(name, "[") != (len(names) > 0) || len(names) > 0 && !asked[name] {
			continue
		}
		before := " "
		if r.locked[pci] == name {
			before = " RO"
		}
		if r.silent {
			text += fmt.Sprintf("%s       %s   X(%d)\n", before, name, v.next)
		} else {
			text += fmt.Sprintf("%s       %s   X(%d)   X(%d)   X(%d)\n", before, name, 1, v.current, v.next)
		}
	}
	return text
}

func intOf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// PowerState implements Power.
func (r *rack) PowerState(context.Context) (bmc.PowerState, error) {
	if r.on {
		return bmc.PowerOn, nil
	}
	return bmc.PowerOff, nil
}

// SetPower implements Power: a card loads its settings when it gets power.
func (r *rack) SetPower(_ context.Context, a bmc.PowerAction) (bmc.Outcome, error) {
	r.presses = append(r.presses, a.String())
	switch {
	case a == bmc.SoftOff && r.deaf:
		return bmc.Outcome{}, errkind.New(errkind.Timeout, "still on")
	case a == bmc.On && !r.on:
		r.on, r.boots = true, r.boots+1
		for _, card := range r.cards {
			for _, v := range card {
				if !r.stuck {
					v.current = v.next
				}
			}
			if r.grows && card["LINK_TYPE_P2"] == nil && card["MODULE_SPLIT_M0[4]"] != nil && card["MODULE_SPLIT_M0[4]"].current == 2 {
				card["LINK_TYPE_P2"] = &value{1, 1}
			}
		}
	case a != bmc.On:
		r.on = false
	}
	return bmc.Outcome{}, nil
}

// vpd are vital product data with a name, a part number and a serial number.
var vpd = append([]byte("\x82\x0a\x00ConnectX-7\x90\x1a\x00PN\x0aMCX7551-AASN\x0aMT2312X001"), 0x78)

func hardware(link string, rom *bool) *inventory.Hardware {
	f := &inventory.Fabric{Block: inventory.Block{Kind: "infiniband", Name: "compute"}}
	return &inventory.Hardware{Name: "h", Arch: inventory.AMD64, NICs: []inventory.NIC{
		{Name: "mgmt", Model: "ConnectX-6 Lx", Boot: true, Ports: []inventory.NICPort{{Rail: -1, PCI: "0000:29:00.0"}}},
		{Name: "rail", HCA: true, Fabric: f, Model: "ConnectX-7", LinkType: link, OptionROM: rom, Ports: []inventory.NICPort{{PCI: "0000:18:00.0"}}},
		{Name: "storage", HCA: true, Fabric: f, Model: "ConnectX-7", LinkType: link, Ports: []inventory.NICPort{{Rail: 1, PCI: "0000:2a:00.0"}, {Rail: 2, PCI: "0000:2a:00.1"}}},
	}}
}

func site(h *inventory.Hardware) *inventory.Inventory {
	image := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}
	doca := &inventory.Driver{Block: inventory.Block{Kind: "doca", Name: "doca32"}}
	n := &inventory.Node{Name: "n1", Image: image, Hardware: h, Drivers: []*inventory.Driver{doca}, Rack: &inventory.Rack{Name: "r01"}, BootMAC: addr.MAC{2, 0, 0, 0, 0, 1}}
	return &inventory.Inventory{Hardware: []*inventory.Hardware{h}, Nodes: []*inventory.Node{n, {Name: "n2", Image: image, Hardware: &inventory.Hardware{Name: "none"}}}}
}

func stageOf(inv *inventory.Inventory, r *rack) (*Stage, plan.Step) {
	s := New(inv, r, func(context.Context, string) (Power, error) { return r, nil })
	steps, _ := s.Plan(onnodetest.NewRun())
	return s, steps[0]
}

func ptr(b bool) *bool { return &b }

// TestPlan: the node whose block asks for something has a step after its drivers, what
// brings up its fabrics follows, and cards of Ethernet alone ask for nothing.
func TestPlan(t *testing.T) {
	t.Parallel()
	inv := site(hardware("infiniband", ptr(false)))
	inv.Hardware[0].NICs[0].LinkType = "ethernet"
	steps, diags := New(inv, nil, nil).Plan(onnodetest.NewRun())
	if len(steps) != 1 || diags.HasErrors() || steps[0].ID != "n1/nics.settings" || !steps[0].Inherited || !steps[0].May.Has(plan.Power) || steps[0].NonDisruptive {
		t.Fatalf("%+v, %v", steps, diags)
	}
	var in []string
	for _, x := range steps[0].Inputs {
		in = append(in, x.Name+"="+x.Value)
	}
	if got, want := strings.Join(in, ", "), "hca.rail.link_type=infiniband, hca.rail.link_type at=0000:18:00.0, hca.rail.option_rom=false, hca.rail.option_rom at=0000:18:00.0, hca.storage.link_type=infiniband, hca.storage.link_type at=0000:2a:00.0 0000:2a:00.1"; got != want {
		t.Errorf("inputs %s", got)
	}
	if u := steps[0].Uses; len(u) != 2 || u[0].Resource != "inrush/r01" || u[0].Hold != plan.UntilReleased {
		t.Errorf("uses %+v", u)
	}
	shared := make([]plan.Need, 2, 8) // what steps share is not changed
	shared[0], shared[1] = plan.Need{Step: "n1/drivers.doca32", On: plan.Success, Triggers: true}, plan.Need{Step: "n1/drivers.doca32", On: plan.Success}
	woven := Weave(inv, []plan.Step{{ID: "n1/fabric.compute", Stage: "fabric", Needs: shared}, {ID: "n1/drivers.cuda", Stage: "drivers", Needs: shared}, {ID: "n2/fabric.compute", Stage: "fabric", Needs: []plan.Need{{Step: "n2/install.boot"}}}})
	if n := woven[0].Needs; len(n) != 3 || n[2] != (plan.Need{Step: "n1/nics.settings", On: plan.Success, Triggers: true}) || shared[:3][2].Step != "" {
		t.Errorf("needs %+v", n)
	}
	if len(woven[1].Needs) != 2 || len(woven[2].Needs) != 1 {
		t.Errorf("others got needs: %+v", woven)
	}
}

// TestApply: what differs is written, all cards get one cold cycle, and what was right at
// first, or is now, is left alone.
func TestApply(t *testing.T) {
	t.Parallel()
	inv, r := site(hardware("ethernet", ptr(false))), newRack()
	r.program = "mstconfig"
	s, st := stageOf(inv, r)
	run := onnodetest.NewRun(subject.OfNode("n1"))
	if o, err := s.Observe(t.Context(), run, st); err != nil || o.State != stage.Differs || !strings.Contains(o.Evidence, "0000:18:00.0: LINK_TYPE_P1 is X(1); asked for is ETH(2)") {
		t.Errorf("%+v, %v", o, err)
	}
	if err := s.Apply(t.Context(), run, st); err != nil {
		t.Fatal(err)
	}
	var sets []string
	for _, c := range r.Calls(" set ") {
		sets = append(sets, c.Line())
	}
	want := []string{
		"mstconfig -d 0000:18:00.0 -y set LINK_TYPE_P1=2 EXP_ROM_PXE_ENABLE=0 EXP_ROM_UEFI_x86_ENABLE=0",
		"mstconfig -d 0000:2a:00.0 -y set LINK_TYPE_P1=2 LINK_TYPE_P2=2",
	}
	if strings.Join(sets, "\n") != strings.Join(want, "\n") {
		t.Errorf("set:\n%s", strings.Join(sets, "\n"))
	}
	if got := strings.Join(r.presses, " "); got != "soft on" {
		t.Errorf("the power button: %s", got)
	}
	last := lastRecord(run, "n1")
	if len(run.Findings) > 0 || len(run.Effects) != 2 || last.Leaving != "" || strings.Join(last.Settings, "|") != "0000:18:00.0 LINK_TYPE_P1 X(2)|0000:18:00.0 EXP_ROM_PXE_ENABLE X(0)|0000:18:00.0 EXP_ROM_UEFI_x86_ENABLE X(0)|0000:18:00.0 EXP_ROM_UEFI_ARM_ENABLE X(0)|0000:2a:00.0 LINK_TYPE_P1 X(2)|0000:2a:00.0 LINK_TYPE_P2 X(2)" {
		t.Errorf("%v, %v, %+v", run.Findings, run.Effects, last)
	}
	if o, err := s.Observe(t.Context(), run, st); err != nil || o.State != stage.Conforms {
		t.Errorf("%+v, %v", o, err)
	}
	if err := s.Apply(t.Context(), run, st); err != nil || len(run.Effects) != 2 || len(r.presses) != 2 || len(r.Calls(" set ")) != 2 {
		t.Errorf("applied again: %v, %v, %v", err, run.Effects, r.presses)
	}
}

// TestFindings: a card that does not take a setting, is another one, or boots its node is a
// finding that names it, and no other card is written.
func TestFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		change          func(*rack, *inventory.Inventory, *onnodetest.Run)
		cause, evidence string
		presses         string
		sets            int
	}{
		{"lost", func(r *rack, _ *inventory.Inventory, _ *onnodetest.Run) { r.lost = true }, "a NIC does not keep what is set", "0000:18:00.0: ConnectX7 MCX755106AS-HEA_Ax, serial number MT2312X001", "", 2},
		{"stuck", func(r *rack, _ *inventory.Inventory, _ *onnodetest.Run) { r.stuck = true }, "after a power cycle a NIC does not have what was set", "LINK_TYPE_P1 is X(1), and X(2) from the next power cycle on; asked for is ETH(2)", "soft on", 2},
		{"deaf", func(r *rack, _ *inventory.Inventory, _ *onnodetest.Run) { r.deaf, r.stuck = true, true }, "after a power cycle a NIC does not have what was set", "0000:2a:00.0", "soft off on", 2},
		{"another card", func(r *rack, _ *inventory.Inventory, _ *onnodetest.Run) { r.types["0000:2a:00.0"] = "ConnectX6DX" }, "the card at 0000:2a:00.0 is a ConnectX6DX, and the inventory says ConnectX-7", "ConnectX6DX", "", 0},
		{"no card", func(r *rack, _ *inventory.Inventory, _ *onnodetest.Run) { delete(r.cards, "0000:2a:00.0") }, "the settings of a NIC cannot be read", "Failed to open the device", "", 0},
		{"for reading", func(r *rack, _ *inventory.Inventory, _ *onnodetest.Run) {
			r.locked = map[string]string{"0000:2a:00.0": "LINK_TYPE_P2"}
		}, "the card at 0000:2a:00.0 (MCX755106AS-HEA_Ax) lets nobody set LINK_TYPE_P2, which is X(1); asked for is ETH(2)", "lets nobody", "", 0},
		{"boot NIC", func(_ *rack, inv *inventory.Inventory, run *onnodetest.Run) {
			f, err := install.HardwareFact.New(subject.OfNode("n1"), wire.Hardware{NICs: []wire.NIC{{MAC: inv.Nodes[0].BootMAC, PCI: "0000:18:00.1"}}}, "")
			if err != nil {
				t.Error(err)
			}
			_ = run.Learn(t.Context(), f)
		}, "the boot NIC is among those whose option ROM is to be off", "nothing is written", "", 0},
		{"InfiniBand of Ethernet", func(r *rack, inv *inventory.Inventory, _ *onnodetest.Run) {
			inv.Hardware[0].NICs[1].LinkType = "infiniband"
			delete(r.cards["0000:18:00.0"], "LINK_TYPE_P1")
		}, `the card at 0000:18:00.0 (MCX755106AS-HEA_Ax) has no setting LINK_TYPE_P1, which link_type of hca "rail" needs`, "no setting", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv, r, run := site(hardware("ethernet", ptr(false))), newRack(), onnodetest.NewRun(subject.OfNode("n1"))
			c.change(r, inv, run)
			s, st := stageOf(inv, r)
			err := s.Apply(t.Context(), run, st)
			if err == nil || len(run.Findings) != 1 {
				t.Fatalf("%v, %v", err, run.Findings)
			}
			f := run.Findings[0]
			if f.Cause != c.cause || !strings.Contains(strings.Join(f.Evidence, "\n"), c.evidence) || f.Action == "" || !strings.HasPrefix(f.Suspects[0].Part, "NIC at 0000:") {
				t.Errorf("%+v", f)
			}
			if got := strings.Join(r.presses, " "); got != c.presses || len(r.Calls(" set ")) != c.sets {
				t.Errorf("the power button: %q; %d writes", got, len(r.Calls(" set ")))
			}
		})
	}
}

// TestCardThatHangs: a program that does not end over one card is a finding about that card,
// after minutes and not after the hour that the step has.
func TestCardThatHangs(t *testing.T) {
	t.Parallel()
	for _, hangs := range []string{"-d 0000:2a:00.0 -e q", "-d 0000:18:00.0 -y set"} {
		synctest.Test(t, func(t *testing.T) {
			inv, r, run := site(hardware("ethernet", nil)), newRack(), onnodetest.NewRun(subject.OfNode("n1"))
			r.hangs = hangs
			s, st := stageOf(inv, r)
			began := time.Now()
			err := s.Apply(t.Context(), run, st)
			if err == nil || len(run.Findings) != 1 || run.Findings[0].Suspects[0].Part != "NIC at "+strings.Fields(hangs)[1] || !strings.Contains(strings.Join(run.Findings[0].Evidence, " "), "does not end within 2m0s") {
				t.Errorf("%v, %+v", err, run.Findings)
			}
			if took := time.Since(began); took > 5*time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestWithoutProgram: a node without the program is no fault of a card.
func TestWithoutProgram(t *testing.T) {
	t.Parallel()
	inv, r := site(hardware("ethernet", nil)), newRack()
	r.program = ""
	s, st := stageOf(inv, r)
	run := onnodetest.NewRun(subject.OfNode("n1"))
	if err := s.Apply(t.Context(), run, st); err == nil || len(run.Findings) > 0 || !strings.Contains(errkind.Action(err), "mstflint") {
		t.Errorf("%v, %v", err, run.Findings)
	}
}

// TestSilentFirmware: where the firmware does not say what is in force, a write is followed
// by a power cycle and a second apply by none. A card that is Ethernet alone is so by itself.
func TestSilentFirmware(t *testing.T) {
	t.Parallel()
	inv, r := site(hardware("ethernet", nil)), newRack()
	r.silent = true
	delete(r.cards["0000:18:00.0"], "LINK_TYPE_P1")
	s, st := stageOf(inv, r)
	run := onnodetest.NewRun(subject.OfNode("n1"))
	for range 2 {
		if err := s.Apply(t.Context(), run, st); err != nil || strings.Join(r.presses, " ") != "soft on" || len(r.Calls(" set ")) != 1 {
			t.Errorf("%v, %v, %v", err, r.presses, r.Calls(" set "))
		}
	}
}

// TestResume: a run that ended within the power cycle continues there, also with a node that
// is off, and does not cycle one twice that has booted since.
func TestResume(t *testing.T) {
	t.Parallel()
	for _, booted := range []bool{false, true} {
		inv, r := site(hardware("ethernet", nil)), newRack()
		for _, card := range r.cards {
			for _, v := range card {
				v.next = 2
			}
		}
		s, st := stageOf(inv, r)
		run := onnodetest.NewRun(subject.OfNode("n1"))
		if err := record(t.Context(), run, inv.Nodes[0], Record{Leaving: "boot-0"}); err != nil {
			t.Fatal(err)
		}
		r.on = false
		want := "soft on"
		if booted { // the executor knows that the effect was done
			_, _ = r.SetPower(t.Context(), bmc.On)
			run.Effects, want = []string{"n1/nics.settings/cycle-boot-0"}, "on"
		}
		if err := s.Apply(t.Context(), run, st); err != nil || strings.Join(r.presses, " ") != want || len(r.Calls(" set ")) != 0 || lastRecord(run, "n1").Leaving != "" {
			t.Errorf("%v: %v, %v", booted, err, r.presses)
		}
	}
}

// TestProbe: what is known of a power cycle that a run was killed in.
func TestProbe(t *testing.T) {
	t.Parallel()
	inv, r := site(hardware("ethernet", nil)), newRack()
	s, st := stageOf(inv, r)
	run := &probing{Run: onnodetest.NewRun(subject.OfNode("n1"))}
	for _, c := range []struct {
		on    bool
		boots int
		want  stage.Probe
	}{{true, 0, stage.NotDone}, {true, 1, stage.Done}, {false, 0, stage.NotDone}} {
		r.on, r.boots = c.on, c.boots
		if err := s.cycle(t.Context(), run, inv.Nodes[0], st, "boot-0"); !strings.Contains(fmt.Sprint(err), "probed") || run.seen != c.want {
			t.Errorf("%+v: %v, %v", c, run.seen, err)
		}
	}
}

// probing is a run that probes effects and does none.
type probing struct {
	*onnodetest.Run
	seen stage.Probe
}

func (p *probing) Effect(ctx context.Context, e stage.Effect) (err error) {
	p.seen, _, err = e.Probe(ctx)
	if err == nil {
		err = fmt.Errorf("probed")
	}
	return err
}

// TestModes: what makes a BlueField a NIC or a DPU.
func TestModes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ model, mode, want string }{
		{"BlueField-3", "nic", "INTERNAL_CPU_OFFLOAD_ENGINE=DISABLED(1)"},
		{"BlueField-3 B3220", "dpu", "INTERNAL_CPU_OFFLOAD_ENGINE=ENABLED(0)"},
		{"BlueField-2", "nic", "INTERNAL_CPU_PAGE_SUPPLIER=EXT_HOST_PF(1) INTERNAL_CPU_ESWITCH_MANAGER=EXT_HOST_PF(1) INTERNAL_CPU_IB_VPORT0=EXT_HOST_PF(1) INTERNAL_CPU_OFFLOAD_ENGINE=DISABLED(1)"},
	} {
		h := &inventory.Hardware{Name: "h", DPUs: []inventory.DPU{{Name: "bf", Model: c.model, Mode: c.mode, PCI: []string{"0000:3b:00.0"}, Ranges: ranges("mode")}}}
		var got []string
		for _, w := range cardsOf(h)[0].wants {
			got = append(got, fmt.Sprintf("%s=%s(%d)", w.name, w.word, w.value))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %s: %q", c.model, c.mode, got)
		}
	}
}

func TestSerialOf(t *testing.T) {
	t.Parallel()
	if got := serialOf(vpd); got != "MT2312X001" {
		t.Errorf("%q", got)
	}
	for n := range len(vpd) {
		serialOf(vpd[:n])
	}
	for _, text := range []string{"", "\x78", "\x90\xff\xff", "\x90\x03\x00SN\xff"} {
		if got := serialOf([]byte(text)); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// splitSite is a node with one ConnectX-8 that is to be split, and its rack.
func splitSite(into int) (*inventory.Inventory, *rack) {
	h := hardware("ethernet", nil)
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "compute"}}
	nic := inventory.NIC{Name: "rail", HCA: true, Fabric: f, Model: "ConnectX-8", LinkType: "ethernet", Split: into}
	for i := range into {
		nic.Ports = append(nic.Ports, inventory.NICPort{Rail: i, PCI: fmt.Sprintf("0000:18:00.%d", i)})
	}
	h.NICs = append(h.NICs[:1], nic)
	r := newRack()
	r.types["0000:18:00.0"] = "ConnectX8"
	r.cards = map[string]map[string]*value{"0000:18:00.0": {"LINK_TYPE_P1": {1, 1}, "NUM_OF_PF": {1, 1}, "NUM_OF_PLANES_P1": {4, 4}}}
	for i := range 16 {
		v := 1
		if i > 7 {
			v = 255
		}
		r.cards["0000:18:00.0"][fmt.Sprintf("MODULE_SPLIT_M0[%d]", i)] = &value{v, v}
	}
	return site(h), r
}

// TestSplit: a cage is split by one write and one cold cycle, with the arguments of NVIDIA's
// guide, its functions are looked for, and nothing is written again.
func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		grows bool
		want  string // what is set
		power string
	}{
		{false, "mlxconfig -d 0000:18:00.0 -y set LINK_TYPE_P1=2 NUM_OF_PLANES_P1=0 NUM_OF_PF=2 MODULE_SPLIT_M0[4..7]=2", "soft on"},
		{true, "mlxconfig -d 0000:18:00.0 -y set LINK_TYPE_P1=2 NUM_OF_PLANES_P1=0 NUM_OF_PF=2 MODULE_SPLIT_M0[4..7]=2\nmlxconfig -d 0000:18:00.0 -y set LINK_TYPE_P2=2", "soft on soft on"},
	} {
		inv, r := splitSite(2)
		r.grows = c.grows
		s, st := stageOf(inv, r)
		run := onnodetest.NewRun(subject.OfNode("n1"))
		if o, err := s.Observe(t.Context(), run, st); err != nil || o.State != stage.Differs || !strings.Contains(o.Evidence, "MODULE_SPLIT_M0[4..7] is X(1); asked for is 2") {
			t.Errorf("%+v, %v", o, err)
		}
		for range 2 { // the second time nothing is left to do
			if err := s.Apply(t.Context(), run, st); err != nil {
				t.Fatal(err)
			}
			var sets []string
			for _, call := range r.Calls(" set ") {
				sets = append(sets, call.Line())
			}
			if strings.Join(sets, "\n") != c.want || strings.Join(r.presses, " ") != c.power || len(run.Findings) > 0 {
				t.Errorf("set:\n%s\npower %v, %v", strings.Join(sets, "\n"), r.presses, run.Findings)
			}
		}
		if last := strings.Join(lastRecord(run, "n1").Settings, "|"); !strings.Contains(last, "0000:18:00.0 MODULE_SPLIT_M0[0..3] X(1)|0000:18:00.0 MODULE_SPLIT_M0[4..7] X(2)|0000:18:00.0 MODULE_SPLIT_M0[8..15] X(255)") {
			t.Errorf("recorded %s", last)
		}
		if o, err := s.Observe(t.Context(), run, st); err != nil || o.State != stage.Conforms {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

// TestSplitFindings: a card that does not take the split, is not made for it, or does not show
// its functions is a finding, and one that is not made for it is not written.
func TestSplitFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		change          func(*rack, *inventory.Inventory)
		cause, evidence string
		sets            int
	}{
		{"lost", func(r *rack, _ *inventory.Inventory) { r.lost = true }, "a NIC does not keep what is set", "MODULE_SPLIT_M0[4..7] is X(1)", 1},
		{"stuck", func(r *rack, _ *inventory.Inventory) { r.stuck = true }, "after a power cycle a NIC does not have what was set", "MODULE_SPLIT_M0[4..7] is X(1), and X(2) from the next power cycle on; asked for is 2", 1},
		{"no functions", func(r *rack, _ *inventory.Inventory) { r.hidden = true }, "a NIC whose port is split does not show all of its functions", "no function at 0000:18:00.1", 1},
		{"two cages", func(r *rack, _ *inventory.Inventory) { r.about = "ConnectX-8; Dual-port QSFP112" }, "the card at 0000:18:00.0 (MCX755106AS-HEA_Ax) has two cages, and the split of one of them is not known: it is \"ConnectX-8; Dual-port QSFP112\"", "two cages", 0},
		{"no such setting", func(r *rack, _ *inventory.Inventory) {
			for i := range 16 {
				delete(r.cards["0000:18:00.0"], fmt.Sprintf("MODULE_SPLIT_M0[%d]", i))
			}
		}, `the card at 0000:18:00.0 (MCX755106AS-HEA_Ax) has no setting MODULE_SPLIT_M0[0..3], which split of hca "rail" needs`, "no setting", 0},
		{"not made for it", func(r *rack, inv *inventory.Inventory) {
			r.types["0000:18:00.0"], inv.Hardware[0].NICs[1].Model = "ConnectX7", "ConnectX-7"
		}, `the card at 0000:18:00.0 (MCX755106AS-HEA_Ax) does not say of itself that its port can be split ("Port Split Capable"): it is "a card"`, "does not say", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			into := 2
			if c.name == "not made for it" {
				into = 4
			}
			inv, r := splitSite(into)
			c.change(r, inv)
			s, st := stageOf(inv, r)
			run := onnodetest.NewRun(subject.OfNode("n1"))
			err := s.Apply(t.Context(), run, st)
			if err == nil || len(run.Findings) != 1 || len(r.Calls(" set ")) != c.sets {
				t.Fatalf("%v, %v, %v", err, run.Findings, r.Calls(" set "))
			}
			if f := run.Findings[0]; f.Cause != c.cause || !strings.Contains(strings.Join(f.Evidence, "\n"), c.evidence) || f.Suspects[0].Part != "NIC at 0000:18:00.0" || f.Action == "" {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestSplitCables: cables of a node whose ports are split are compared after they were, those
// of others after the ramdisk listened.
func TestSplitCables(t *testing.T) {
	t.Parallel()
	inv, _ := splitSite(2)
	st := plan.Step{ID: "site/cabling.check", Stage: "cabling", Needs: []plan.Need{{Step: "n1/install.configure", On: plan.Settled, Triggers: true}, {Step: "n2/install.configure", On: plan.Settled}}}
	got := Weave(inv, []plan.Step{st})[0].Needs
	if len(got) != 2 || got[0] != (plan.Need{Step: "n1/nics.settings", On: plan.Settled, Triggers: true}) || got[1].Step != "n2/install.configure" || st.Needs[0].Step != "n1/install.configure" {
		t.Errorf("%+v, %+v", got, st.Needs)
	}
}
