// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// shimAuthorities are the authorities of Microsoft that sign shims, the newer one first: firmware
// starts one by a signature of an authority that is in its db. Debian's has both in one file (package
// shim-signed 1.51~1+deb13u1+16.1-2~deb13u1, as sbverify --list shows it); of others it is not known.
var shimAuthorities = []string{"Microsoft UEFI CA 2023", "Microsoft Corporation UEFI CA 2011"}

// signatureFor is the authority by whose signature firmware with these in db starts a
// shim that has both; "": by none.
func signatureFor(db []string) string {
	for _, a := range shimAuthorities {
		if slices.Contains(db, a) {
			return a
		}
	}
	return ""
}

// judgeSecureBoot holds what a BMC shows against a node whose hardware block asks for Secure
// Boot. cause is why it cannot boot so; "": nothing that is shown stands against it. Only a
// setting that is off counts: what was in force at the last boot may be older than it.
func judgeSecureBoot(s redfish.SecureBoot) (cause, action string) {
	const on = "Switch Secure Boot on in the firmware's setup, with its factory keys (Microsoft's); or set secure_boot = false in the hardware block."
	switch {
	case s.Current == "Enabled":
	case s.Wanted == "false":
		return "Secure Boot is switched off in the firmware", on
	case s.Mode == "SetupMode":
		return "Secure Boot is off: the firmware is in setup mode, without a platform key", on
	}
	if len(s.Authorities) > 0 && signatureFor(s.Authorities) == "" {
		return "the firmware would refuse shim: none of the authorities that sign it is in db",
			"Restore the factory keys of Secure Boot in the firmware's setup, and allow Microsoft's UEFI CA for third parties there (" + strings.Join(shimAuthorities, " or ") + ")."
	}
	return "", ""
}

// describeSecureBoot is what a BMC shows, in words; by whose signature the shim of a distribution starts is
// in it.
func describeSecureBoot(s redfish.SecureBoot, of distribution.Family) string {
	text := fmt.Sprintf("the BMC shows Secure Boot: at the last boot %q, switched on %q, mode %q", s.Current, s.Wanted, s.Mode)
	if len(s.Authorities) == 0 {
		return text + "; it does not show db"
	}
	text += "; db has " + strings.Join(s.Authorities, ", ")
	by := signatureFor(s.Authorities)
	switch {
	case by == "":
	case of.Name == distribution.Debian:
		text += ": shim starts by its signature of " + by
	case slices.Contains(s.Authorities, shimAuthorities[1]):
		text += ": shim of " + of.Title + " starts by its signature of " + shimAuthorities[1]
	default:
		text += ": shim of " + of.Title + " starts where it is one that " + by + " signed"
	}
	return text
}

// checkSecureBoot asks the BMC of a node that is to boot with Secure Boot how its firmware is
// set, before anything is booted. A BMC that does not report it stops nothing: the node itself
// is asked in its ramdisk.
func (s *Stage) checkSecureBoot(ctx context.Context, run stage.Run, n *inventory.Node, b BMC) error {
	h, ok := b.(*bmc.Handle)
	if !ok || n.Hardware == nil || !n.Hardware.SecureBoot {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, markWait)
	defer cancel()
	var shown redfish.SecureBoot
	err := bmc.Use(asking, h, "read Secure Boot", func(x bmc.SecureBoot) (err error) {
		shown, err = x.SecureBoot(asking)
		return err
	})
	if err != nil {
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("how Secure Boot of %s is set is not known before it boots: %s", n.Name, errkind.Line(err))})
		return context.Cause(ctx)
	}
	signer, _ := distribution.Find(distribution.Debian)
	if n.Image != nil { // one that is decommissioned may have none
		if f, ok := distribution.FamilyOf(n.Image); ok {
			signer = f
		}
	}
	said := describeSecureBoot(shown, signer)
	cause, action := judgeSecureBoot(shown)
	if cause == "" {
		run.Emit(event.Event{Type: event.Evidence, Text: said})
		return nil
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "Secure Boot"}}, Cause: cause, Evidence: []string{said}, Action: action}
	if err := run.Blame(ctx, f); err != nil {
		return err
	}
	return errkind.New(errkind.Mismatch, "%s; hardware.%s says secure_boot = true", cause, n.Hardware.Name).Do(action)
}
