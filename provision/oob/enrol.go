// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// enrolLimit is the hang deadline of the step that enrols the site's certificate: a BMC may read
// some thirty certificates from its firmware, one request each.
const enrolLimit = 5 * time.Minute

// Enrols reports whether the site's certificate for kernel modules is enrolled in the firmware
// of a node by its BMC, where that can.
func Enrols(n *inventory.Node) bool {
	return bmc.Protocol(n.BMC.Protocol) == bmc.Redfish && kinds.NeedSigned(n)
}

// Enrolling is the stage that enrols the certificate of the key that signs kernel modules; nil:
// the site has none yet.
func (s *Stage) Enrolling(by *modsign.Certificate) *Stage {
	with := *s
	with.signer = by
	return &with
}

// enrolStep is the id of the step that enrols the certificate in a node's firmware.
func enrolStep(node string) plan.StepID { return StepOf(node) + ".keys" }

// enrolSteps are the steps of a node whose BMC enrols the certificate.
func (s *Stage) enrolSteps(n *inventory.Node) []plan.Step {
	if !Enrols(n) {
		return nil
	}
	st := plan.Step{ID: enrolStep(n.Name), Stage: Name, Subject: subject.OfNode(n.Name), DepthKey: n.Name, Version: Version,
		Title:    "add the site's certificate for kernel modules to db of the firmware (Secure Boot)",
		Uses:     []plan.Use{{Resource: "bmc/" + n.Name, Units: 1, Hold: plan.ForStep}},
		Needs:    []plan.Need{{Step: StepOf(n.Name), On: plan.Success}},
		May:      plan.Effects(plan.Config),
		Decl:     stage.Source(n.Hardware.Decl),
		Deadline: plan.Budget{Limit: enrolLimit, Expected: 5 * time.Second}}
	if s.signer != nil {
		st.Inputs = []plan.Input{{Name: "certificate", Value: s.signer.Fingerprint(), Decl: st.Decl}}
	}
	return []plan.Step{st}
}

// HasConsole reports whether a node has a serial console that is given over the network: by an SSH server, or by
// its BMC.
func HasConsole(n *inventory.Node) bool {
	return n.Console != nil || bmc.Protocol(n.BMC.Protocol) == bmc.IPMI && n.Hardware != nil && n.Hardware.Console.Port != ""
}

// byHand are the warnings of a plan about nodes that need the certificate and whose BMCs have neither
// a way to add it nor a console at which it is enrolled, one for each chassis and protocol.
func (s *Stage) byHand() (found hcl.Diagnostics) {
	type kind struct {
		h        *inventory.Hardware
		protocol string
	}
	nodes := map[kind][]string{}
	var order []kind
	for _, n := range s.inv.Nodes {
		k := kind{n.Hardware, n.BMC.Protocol}
		if bmc.Protocol(k.protocol) == bmc.Redfish || HasConsole(n) || !kinds.NeedSigned(n) {
			continue
		}
		if nodes[k] = append(nodes[k], n.Name); len(nodes[k]) == 1 {
			order = append(order, k)
		}
	}
	for _, k := range order {
		at := inventory.PlaceOf(k.h.Ranges, "secure_boot", k.h.Decl)
		found = append(found, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Certificate that is enrolled by hand", Subject: &at,
			Detail: fmt.Sprintf("Hardware %q boots with Secure Boot, drivers of nodes (%d of them) have kernel modules that are signed with the site's key, and BMCs that speak %s cannot add its certificate to db of the firmware; nor do they have a serial console here at which it could be enrolled in shim's list (IPMI, with a console in the hardware block; or a console block of the node). Put it there by the firmware's setup before the nodes are installed: `ironrail state keys --certificate der > modules.cer`. A node whose firmware does not have it is taken out before anything is erased.",
				k.h.Name, len(nodes[k]), k.protocol)})
	}
	return found
}

// keyOf names a certificate as a BMC does.
func keyOf(c *modsign.Certificate) redfish.Key {
	return redfish.Key{Name: c.Name(), Serial: c.Serial(), Fingerprint: c.Fingerprint()}
}

// observeKeys looks whether db has the certificate. A BMC that does not show db leaves it
// unknown.
func (s *Stage) observeKeys(ctx context.Context, n *inventory.Node) (stage.Observation, error) {
	o := stage.Observation{State: stage.Unknown, Evidence: "the BMC does not show db"}
	f, err := s.firmware(ctx, n.Name)
	if err != nil || s.signer == nil {
		return o, nil
	}
	var shown redfish.SecureBoot
	err = bmc.Use(ctx, f.handle, "read Secure Boot", func(x bmc.SecureBoot) (err error) {
		shown, err = x.SecureBoot(ctx)
		return err
	})
	switch {
	case err != nil:
		o.Evidence = errkind.Line(err)
	case slices.ContainsFunc(shown.Keys, keyOf(s.signer).Is):
		o = stage.Observation{State: stage.Conforms, Evidence: "db has " + s.signer.Name()}
	case len(shown.Keys) > 0:
		o = stage.Observation{State: stage.Differs, Evidence: "db does not have " + s.signer.Name()}
	}
	return o, nil
}

// enrol has the BMC add the certificate to db. One that cannot stops nothing: whether firmware
// and shim have the certificate is read in the ramdisk, before anything is erased.
func (s *Stage) enrol(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	if s.signer == nil {
		return errkind.New(errkind.Internal, "the site has no key for kernel modules")
	}
	f, err := s.firmware(ctx, n.Name)
	if err != nil {
		return s.reportBMC(ctx, run, n, err)
	}
	var out bmc.Outcome
	err = run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/enrol-%d", st.ID, run.Clock().Now().UnixNano()), Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("add certificate %q to db of the firmware of %s", s.signer.Name(), n.Name),
		Do: func(ctx context.Context) error {
			return bmc.Use(ctx, f.handle, "enrol the certificate", func(x bmc.SecureBoot) (err error) {
				out, err = x.Enrol(ctx, s.signer.PEM(), keyOf(s.signer))
				return err
			})
		}})
	if err == nil {
		run.Emit(event.Event{Type: event.Evidence, Text: fmt.Sprintf("certificate %q of this site for kernel modules: %s", s.signer.Name(), out.Evidence)})
		return nil
	}
	switch errkind.Of(err).Base() {
	case errkind.Unsupported, errkind.Refused, errkind.NotFound:
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the BMC of %s does not add certificates to db (%s): where its firmware does not have that of this site, put it there by the firmware's setup (`ironrail state keys --certificate der`)", n.Name, errkind.Line(err))})
		return nil
	}
	return s.reportBMC(ctx, run, n, err)
}
