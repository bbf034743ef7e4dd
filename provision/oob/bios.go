// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

// Hang deadlines of the steps about settings of the node's firmware.
const (
	biosLimit  = 5 * time.Minute
	withReboot = 20 * time.Minute // what the reading back takes where it has to reboot the node: no straggler before
	checkLimit = 40 * time.Minute // a self-test that trains memory twice, and the boot after it
)

// settingsRequestFact is the last request for settings of a node's firmware.
const settingsRequestFact = fact.Name[SettingsRequest]("bmc.bios_asked")

// SettingsRequest is one request for settings.
type SettingsRequest struct {
	ID       string            `json:"id"` // names the reboot that it may need
	Settings map[string]string `json:"settings"`
	Evidence string            `json:"evidence,omitempty"` // what the BMC said of it
}

// biosStep is the id of the step that asks for a node's settings, and checkStep of
// the one that reads back whether they are in force.
func biosStep(node string) plan.StepID { return StepOf(node) + ".bios" }

// checkStep is the id of the step that reads settings back.
func checkStep(node string) plan.StepID { return StepOf(node) + ".bios_check" }

// The steps of others that settings stand between, and the drain. Their stages
// import this one.
func netbootStep(node string) plan.StepID { return plan.StepID(node + "/install.netboot") }
func inspectStep(node string) plan.StepID { return plan.StepID(node + "/install.inspect") }
func bootStep(node string) plan.StepID    { return plan.StepID(node + "/install.boot") }
func drainStep(node string) plan.StepID   { return plan.StepID(node + "/handover.drain") }

// wantsBIOS reports whether the site gives settings to a node's firmware.
func wantsBIOS(n *inventory.Node) bool { return n.Hardware != nil && len(n.Hardware.BIOS) > 0 }

// biosSteps are the two steps of a node with settings.
func biosSteps(n *inventory.Node) ([]plan.Step, hcl.Diagnostics) {
	if !wantsBIOS(n) {
		return nil, nil
	}
	if wrong := checkBIOS(n); wrong != nil {
		return nil, wrong
	}
	me, decl := subject.OfNode(n.Name), stage.Source(n.Hardware.Decl)
	step := func(id plan.StepID, title string, limit, expected time.Duration, may plan.EffectSet) plan.Step {
		st := plan.Step{ID: id, Stage: Name, Subject: me, Title: title, May: may, Decl: decl, Version: Version, DepthKey: n.Name,
			Uses:     []plan.Use{{Resource: "bmc/" + n.Name, Units: 1, Hold: plan.ForStep}},
			Deadline: plan.Budget{Limit: limit, Expected: expected}}
		for _, k := range slices.Sorted(maps.Keys(n.Hardware.BIOS)) {
			st.Inputs = append(st.Inputs, plan.Input{Name: k, Value: n.Hardware.BIOS[k], Decl: decl})
		}
		return st
	}
	ask := step(biosStep(n.Name), fmt.Sprintf("ask the firmware for %s of hardware.%s", formatSettings(len(n.Hardware.BIOS)), n.Hardware.Name), biosLimit, 5*time.Second, plan.Effects(plan.Config))
	ask.Needs = []plan.Need{{Step: StepOf(n.Name), On: plan.Success}}
	if n.HandedOver() {
		ask.Needs = append(ask.Needs, plan.Need{Step: drainStep(n.Name), On: plan.Success})
	}
	ask.Yields = []fact.Key{settingsRequestFact.Of(me)}
	check := step(checkStep(n.Name), "read back that the settings are in force; reboot once when nothing else did", checkLimit, 2*time.Second, plan.Effects(plan.Config, plan.Power))
	check.Deadline.Slow = withReboot
	check.Needs = []plan.Need{{Step: biosStep(n.Name), On: plan.Success, Triggers: true}, {Step: inspectStep(n.Name), On: plan.Success, Triggers: true}}
	check.Reads = []fact.Key{settingsRequestFact.Of(me)}
	return []plan.Step{ask, check}, nil
}

// checkBIOS refuses settings of a node whose BMC cannot set them.
func checkBIOS(n *inventory.Node) hcl.Diagnostics {
	if !wantsBIOS(n) || bmc.Protocol(n.BMC.Protocol) == bmc.Redfish {
		return nil
	}
	decl := n.Decl
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "BIOS settings need Redfish", Subject: &decl,
		Detail: fmt.Sprintf("hardware %q has BIOS settings, and the BMC of node %q speaks %s, which has no way to set them. Set protocol = \"redfish\" in its bmc block, or take `bios` out of the hardware block and set it by hand.",
			n.Hardware.Name, n.Name, n.BMC.Protocol)}}
}

func formatSettings(n int) string {
	if n == 1 {
		return "1 BIOS setting"
	}
	return fmt.Sprintf("%d BIOS settings", n)
}

// Weave puts the settings of firmware into their place among the steps of other
// stages: they are asked for before the power-on that takes them up, found in
// force before anything is erased, and what runs on the node runs again when they
// changed. A change of settings by itself installs nothing. The site's certificate is
// added before the same power-on.
func Weave(inv *inventory.Inventory, steps []plan.Step) []plan.Step {
	for i := range steps {
		st := &steps[i]
		n, ok := inv.Node(st.Subject.Name)
		if st.Subject.Kind != subject.Node || st.Stage == Name || !ok || bmc.Protocol(n.BMC.Protocol) != bmc.Redfish {
			continue
		}
		if st.ID == netbootStep(n.Name) && Enrols(n) {
			st.Needs = append(st.Needs, plan.Need{Step: enrolStep(n.Name), On: plan.Success})
		}
		if !wantsBIOS(n) {
			continue
		}
		needs := func(id plan.StepID) bool {
			return slices.ContainsFunc(st.Needs, func(x plan.Need) bool { return x.Step == id && x.On == plan.Success })
		}
		switch {
		case st.ID == netbootStep(n.Name):
			st.Needs = append(st.Needs, plan.Need{Step: biosStep(n.Name), On: plan.Success})
		case needs(inspectStep(n.Name)):
			st.Needs = append(st.Needs, plan.Need{Step: checkStep(n.Name), On: plan.Success})
		case needs(bootStep(n.Name)):
			st.Needs = append(st.Needs, plan.Need{Step: checkStep(n.Name), On: plan.Success, Triggers: true})
		}
	}
	return steps
}

// firmware is the settings side of a BMC.
type firmware struct{ handle *bmc.Handle }

// firmware finds the settings side of a node's BMC.
func (s *Stage) firmware(ctx context.Context, node string) (firmware, error) {
	b, err := s.open(ctx, node)
	if err != nil {
		return firmware{}, err
	}
	h, ok := b.(*bmc.Handle)
	if !ok {
		return firmware{}, errkind.New(errkind.Unsupported, "the BMC of %s has no BIOS settings", node)
	}
	return firmware{h}, nil
}

func (f firmware) read(ctx context.Context) (now, pending map[string]string, err error) {
	err = bmc.Use(ctx, f.handle, "read the BIOS settings", func(b bmc.BIOS) (err error) {
		now, pending, err = b.BIOS(ctx)
		return err
	})
	return now, pending, err
}

func (f firmware) set(ctx context.Context, want map[string]string) (out bmc.Outcome, err error) {
	err = bmc.Use(ctx, f.handle, "set the BIOS settings", func(b bmc.BIOS) (err error) {
		out, err = b.SetBIOS(ctx, want)
		return err
	})
	return out, err
}

// lackingSettings lists the settings that are not in force, in words.
func lackingSettings(want, now map[string]string) (list []string) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		is, ok := now[k]
		switch {
		case !ok:
			list = append(list, fmt.Sprintf("%s is not a setting of this firmware; asked for is %s", k, want[k]))
		case !strings.EqualFold(is, want[k]):
			list = append(list, fmt.Sprintf("%s is %s; asked for is %s", k, is, want[k]))
		}
	}
	return list
}

// isPending reports whether all that is not in force is pending.
func isPending(want, now, pending map[string]string) bool {
	for k, v := range want {
		if is, ok := now[k]; ok && strings.EqualFold(is, v) {
			continue
		}
		if p, ok := pending[k]; !ok || !strings.EqualFold(p, v) {
			return false
		}
	}
	return true
}

// observeBIOS tells whether the settings are in force. A BMC that does not answer
// leaves it unknown.
func (s *Stage) observeBIOS(ctx context.Context, n *inventory.Node) (stage.Observation, error) {
	f, err := s.firmware(ctx, n.Name)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	now, _, err := f.read(ctx)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	if wrong := lackingSettings(n.Hardware.BIOS, now); len(wrong) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(wrong, "; ")}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: formatSettings(len(n.Hardware.BIOS)) + " in force"}, nil
}

// askBIOS asks for the settings, all at once: some BMCs make one job of each
// request, and take no second one before it ran.
func (s *Stage) askBIOS(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	f, err := s.firmware(ctx, n.Name)
	if err != nil {
		return s.reportBMC(ctx, run, n, err)
	}
	id := fmt.Sprint(run.Clock().Now().UnixNano())
	var out bmc.Outcome
	err = run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/set-%s", st.ID, id), Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("ask the firmware of %s for %s", n.Name, formatPairs(n.Hardware.BIOS)),
		Do:   func(ctx context.Context) (err error) { out, err = f.set(ctx, n.Hardware.BIOS); return err }})
	if err != nil {
		return s.refused(ctx, run, n, err)
	}
	asked, err := settingsRequestFact.New(st.Subject, SettingsRequest{ID: id, Settings: n.Hardware.BIOS, Evidence: out.Evidence}, n.Serial)
	if err != nil {
		return err
	}
	return run.Learn(ctx, asked)
}

// formatPairs writes settings, sorted.
func formatPairs(m map[string]string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, k+" = "+m[k])
	}
	return strings.Join(list, ", ")
}

// refused blames the settings where the BMC answered and said no; what else goes
// wrong with a BMC is blamed as always.
func (s *Stage) refused(ctx context.Context, run stage.Run, n *inventory.Node, err error) error {
	switch errkind.Of(err).Base() {
	case errkind.Refused, errkind.Unsupported, errkind.Mismatch:
		return s.notInForce(ctx, run, n, "the BMC refuses a BIOS setting of hardware."+n.Hardware.Name, []string{err.Error()}, err)
	}
	return s.reportBMC(ctx, run, n, err)
}

// notInForce makes the finding about settings.
func (s *Stage) notInForce(ctx context.Context, run stage.Run, n *inventory.Node, cause string, evidence []string, err error) error {
	action := errkind.Action(err)
	if action == "" {
		action = fmt.Sprintf("Compare `bios` of hardware.%s with the firmware's setup of %s: a setting may be read-only, hang on another one, or be named otherwise by this version. Then run `ironrail apply` again.", n.Hardware.Name, n.Name)
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "BIOS"}}, Cause: cause, Evidence: evidence, Action: action}
	if berr := run.Blame(ctx, f); berr != nil {
		return berr
	}
	return err
}
