// SPDX-License-Identifier: Apache-2.0

// Package oob is the stage bmc: it reaches a node's BMC out of band, proves the
// credentials, and compares who the BMC says it sits in with the inventory, which
// changes nothing. That runs before every step that powers or erases, since two
// exchanged rows of a list are found here and nowhere earlier. It also asks the
// node's firmware for the settings that the site gives, and reads them back, and adds the
// site's certificate for kernel modules to those that Secure Boot trusts.
package oob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

// The stage's name and the version of its fingerprints.
const (
	Name    = "bmc"
	Version = 1
)

// limit is the hang deadline of the step; a BMC that boots answers within it.
const limit = 3 * time.Minute

// Report is what a BMC said about itself and its node.
type Report struct {
	Serial       string `json:"serial,omitempty"` // of the node
	GUID         string `json:"guid,omitempty"`
	Manufacturer uint32 `json:"manufacturer"` // IANA enterprise number; IPMI only
	Product      uint16 `json:"product"`      // the maker's number; IPMI only
	Maker        string `json:"maker,omitempty"`
	Model        string `json:"model,omitempty"`
	BIOS         string `json:"bios,omitempty"`
	Firmware     string `json:"firmware"` // of the BMC
}

// ReportFact is learned from each BMC.
const ReportFact = fact.Name[Report]("bmc.report")

// CertificateFact is the SHA-256, in lower-case hex, of the certificate that a
// Redfish BMC showed when it was found to be the right node's. It is learned where
// the inventory says "pin-first-seen"; from then on no other one is trusted.
const CertificateFact = fact.Name[string]("bmc.certificate")

// BMC is what the stage asks.
type BMC interface {
	bmc.Identifier
	PowerState(context.Context) (bmc.PowerState, error)
}

// Stage is the bmc stage. It is safe for concurrent use.
type Stage struct {
	inv   *inventory.Inventory
	open  func(ctx context.Context, node string) (BMC, error)
	nodes onnode.Nodes // installed nodes; nil: none is reached

	signer *modsign.Certificate // of the key that signs kernel modules; nil: none does
}

// New makes the stage; open may be nil when only Plan is called.
func New(inv *inventory.Inventory, open func(ctx context.Context, node string) (BMC, error)) *Stage {
	return &Stage{inv: inv, open: open}
}

// Reaching lets the stage reach installed nodes: one that has to be rebooted for
// its BIOS settings is rebooted by its own system.
func (s *Stage) Reaching(nodes onnode.Nodes) *Stage {
	with := *s
	with.nodes = nodes
	return &with
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return Name }

// Version implements stage.Stage.
func (s *Stage) Version() int { return Version }

// StepOf returns the id of a node's step.
func StepOf(node string) plan.StepID { return plan.StepID(node + "/" + Name) }

// Check implements stage.Checker.
func (s *Stage) Check() (diags hcl.Diagnostics) {
	for _, n := range s.inv.Nodes {
		if n.Image != nil || n.Retired {
			diags = append(diags, checkBIOS(n)...)
		}
	}
	return diags
}

// Plan implements stage.Stage.
func (s *Stage) Plan(stage.View) ([]plan.Step, hcl.Diagnostics) {
	steps := make([]plan.Step, 0, len(s.inv.Nodes))
	var diags hcl.Diagnostics
	for _, n := range s.inv.Nodes {
		if n.Image == nil && !n.Retired {
			continue
		}
		steps = append(steps, plan.Step{ID: StepOf(n.Name), Stage: Name, Subject: subject.OfNode(n.Name), Only: plan.WhenNeeded,
			Title:  reachTitle(n),
			Uses:   []plan.Use{{Resource: "bmc/" + n.Name, Units: 1, Hold: plan.ForStep}},
			Yields: factsOf(n), DepthKey: n.Name,
			May:      plan.Effects(plan.Config), // of a clock that is off, and an event log that is full
			Decl:     stage.Source(n.Decl),
			Deadline: plan.Budget{Limit: limit, Expected: time.Second}, Version: Version})
		bios, wrong := biosSteps(n)
		steps, diags = append(append(steps, bios...), s.enrolSteps(n)...), append(diags, wrong...)
	}
	return steps, append(diags, s.byHand()...)
}

// reachTitle says what a node's step does.
func reachTitle(n *inventory.Node) string {
	if n.BMC.Endpoint != "" {
		return "reach " + n.BMC.Endpoint + " (" + n.BMC.Protocol + "), which answers for the BMC at " + n.BMC.Address.String()
	}
	return "reach the BMC at " + n.BMC.Address.String() + " (" + n.BMC.Protocol + ") and compare its serial"
}

// factsOf lists the facts that a node's step learns.
func factsOf(n *inventory.Node) []fact.Key {
	keys := []fact.Key{ReportFact.Of(subject.OfNode(n.Name)), logFact.Of(subject.OfNode(n.Name))}
	if Pins(n) {
		keys = append(keys, CertificateFact.Of(subject.OfNode(n.Name)))
	}
	return keys
}

// Pins reports whether the certificate of the first contact is remembered.
func Pins(n *inventory.Node) bool {
	p := bmc.Protocol(n.BMC.Protocol)
	return (p == bmc.Redfish || p == bmc.RPC) && (n.BMC.TLS.Mode == inventory.TLSPinFirstSeen || n.BMC.TLS.Mode == "")
}

// Observe implements stage.Stage: who the BMC is has to be asked each time.
func (s *Stage) Observe(ctx context.Context, _ stage.Run, st plan.Step) (stage.Observation, error) {
	n, ok := s.inv.Node(st.Subject.Name)
	switch {
	case ok && st.ID.Base() == enrolStep(n.Name):
		return s.observeKeys(ctx, n)
	case ok && st.ID.Base() != StepOf(n.Name):
		return s.observeBIOS(ctx, n)
	}
	return stage.Observation{State: stage.Unknown}, nil
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return err
	}
	switch st.ID.Base() {
	case biosStep(n.Name):
		return s.askBIOS(ctx, run, n, st)
	case checkStep(n.Name):
		return s.checkBIOS(ctx, run, n, st)
	case enrolStep(n.Name):
		return s.enrol(ctx, run, n, st)
	}
	b, err := s.open(ctx, n.Name)
	if err != nil {
		return s.reportBMC(ctx, run, n, err)
	}
	id, err := b.Identity(ctx)
	if err != nil {
		return s.reportBMC(ctx, run, n, err)
	}
	if err := s.compare(ctx, run, n, id); err != nil {
		return err
	}
	if err := s.checkVLAN(ctx, run, n, b); err != nil {
		return err
	}
	if err := s.checkSecureBoot(ctx, run, n, b); err != nil {
		return err
	}
	facts, err := learnedFacts(n, st.Subject, b, id)
	if err != nil {
		return err
	}
	if err := prepareLog(ctx, run, st, n, b); err != nil {
		return err
	}
	if mark, ok := markLog(ctx, run, b); ok {
		f, err := logFact.New(st.Subject, mark, id.Serial())
		if err != nil {
			return err
		}
		facts = append(facts, f)
	}
	return run.Learn(ctx, facts...)
}

// learnedFacts returns the facts about a BMC that was found to be the right one.
func learnedFacts(n *inventory.Node, s subject.ID, b BMC, id bmc.Identity) ([]fact.Fact, error) {
	report, err := ReportFact.New(s, reportOf(id), id.Serial())
	if err != nil {
		return nil, err
	}
	facts := []fact.Fact{report}
	shown, ok := b.(interface{ Certificate() string })
	if !ok || !Pins(n) || shown.Certificate() == "" {
		return facts, nil
	}
	cert, err := CertificateFact.New(s, shown.Certificate(), id.Serial())
	return append(facts, cert), err
}

func reportOf(id bmc.Identity) Report {
	r := Report{Serial: id.Serial(), Manufacturer: id.Manufacturer, Product: id.Product,
		Maker: id.Maker, Model: id.ProductName, BIOS: id.BIOS, Firmware: id.Version()}
	if !id.GUID.IsZero() {
		r.GUID = id.GUID.String()
	}
	return r
}

// reportBMC turns an error of the BMC into a finding about it.
func (s *Stage) reportBMC(ctx context.Context, run stage.Run, n *inventory.Node, err error) error {
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "BMC"}},
		Cause: "the BMC does not work as expected", Evidence: []string{err.Error()}, Action: errkind.Action(err)}
	if cause, action := DescribeProblem(err); cause != "" {
		f.Cause, f.Action = cause, action
	}
	if berr := run.Blame(ctx, f); berr != nil {
		return berr
	}
	return err
}

// bmcProblem is one way in which a BMC cannot be worked with.
type bmcProblem struct {
	is            func(error) bool
	cause, action string // the action is used where the error brings none
}

// hasKind tests for an errkind, or one that it is the base of.
func hasKind(k errkind.Kind) func(error) bool {
	return func(err error) bool { return errkind.Of(err).Base() == k }
}

// DescribeProblem says in words which sort of trouble with a BMC an error is, and what a
// person does about it; "" for one that is of no known sort.
func DescribeProblem(err error) (cause, action string) {
	for _, t := range bmcProblems {
		if t.is(err) {
			return t.cause, cmp.Or(errkind.Action(err), t.action)
		}
	}
	return "", errkind.Action(err)
}

// unreachableProblem returns one sort of not being reached.
func unreachableProblem(sort errkind.Reach, cause string) bmcProblem {
	return bmcProblem{func(err error) bool { return errkind.Of(err) == errkind.Unreachable && errkind.ReachOf(err) == sort },
		cause, sort.Action("the BMC", "its service")}
}

// bmcProblems is read from the top; the first that fits is shown.
var bmcProblems = []bmcProblem{
	{func(err error) bool { return errors.Is(err, bmc.ErrLocked) }, "the account is locked on the BMC",
		"Wait until the lock expires, or unlock the account on the BMC. Find out who logs in with a wrong password, then run `ironrail apply` again."},
	{hasKind(errkind.Auth), "the BMC refuses the user name or password",
		"Check username and password of the bmc block and of this BMC; ironrail does not try again by itself, since accounts lock out. Then run `ironrail apply` again."},
	{func(err error) bool { return errors.Is(err, bmc.ErrCertificate) }, "the BMC shows a certificate that is not trusted",
		"Compare the certificate with the BMC's own page; another device may answer at this address."},
	{hasKind(errkind.Mismatch), "what answers at the BMC's address is not what the inventory says", ""},
	unreachableProblem(errkind.Closed, "the port is closed at the BMC's address"),
	unreachableProblem(errkind.NoRoute, "no device has the BMC's address"),
	unreachableProblem(errkind.NoNetwork, "this controller has no route to the BMC's network"),
	unreachableProblem(errkind.Silent, "nothing answers at the BMC's address"),
	{hasKind(errkind.Timeout), "the BMC stopped answering",
		"Check the path to the BMC, then reset the BMC itself if it stays silent."},
	{hasKind(errkind.Refused), "the BMC refuses the request", ""},
	{hasKind(errkind.Unsupported), "the BMC cannot do what is needed", ""},
}

// compare holds what the BMC says against the inventory. A BMC that does not
// know its serial proves nothing; the gate in the ramdisk then needs other two.
func (s *Stage) compare(ctx context.Context, run stage.Run, n *inventory.Node, id bmc.Identity) error {
	wrong := FindMismatches(s.inv, n, id)
	if len(wrong) == 0 {
		return nil
	}
	err := errkind.New(errkind.Mismatch, "%s", strings.Join(wrong, "; ")).
		Do(fmt.Sprintf("Compare the label of the chassis in %s with the row of %s in the list that the site is made from; rows of two nodes may be exchanged. Nothing was powered or erased.", placeOf(n), n.Name))
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "BMC"}},
		Cause: "this is the BMC of another node", Evidence: wrong, Action: err.Action}
	if berr := run.Blame(ctx, f); berr != nil {
		return berr
	}
	return err
}

// FindMismatches says where who a BMC says that it is disagrees with the inventory: with the
// serial number, or the UUID, of the node. None where it says neither.
func FindMismatches(inv *inventory.Inventory, n *inventory.Node, id bmc.Identity) []string {
	var wrong []string
	if got := strings.TrimSpace(id.Serial()); n.Serial != "" && got != "" && got != n.Serial {
		wrong = append(wrong, fmt.Sprintf("the BMC at %s says that it sits in serial %q; the inventory says %q%s", n.BMC.Address, got, n.Serial, ownerOf(inv, got)))
	}
	if n.UUID != "" && !id.GUID.IsZero() {
		if _, ok := id.GUID.Match(n.UUID); !ok {
			wrong = append(wrong, fmt.Sprintf("the BMC says system GUID %s; the inventory says %s", id.GUID, n.UUID))
		}
	}
	return wrong
}

// ownerOf names the node that the inventory gives a serial to.
func ownerOf(inv *inventory.Inventory, serial string) string {
	for _, n := range inv.Nodes {
		if n.Serial == serial {
			return fmt.Sprintf(" (that serial is %s's)", n.Name)
		}
	}
	return " (a serial that is not in the inventory)"
}

// placeOf names where a node stands.
func placeOf(n *inventory.Node) string {
	return fmt.Sprintf("rack %s unit %d", n.Rack.Name, n.Unit)
}
