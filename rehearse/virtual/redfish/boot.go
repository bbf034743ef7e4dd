// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// boot is the Boot object of a system.
func (s *server) boot() obj {
	o := s.c.Override()
	enabled := []string{"Disabled", "Once"}
	if !s.q.BootRejectsContinuous {
		enabled = append(enabled, "Continuous")
	}
	order := make([]string, 0, 2*len(s.o.Hardware.NICs)+1)
	for _, x := range s.bootOptions() {
		order = append(order, x.id)
	}
	return obj{
		"BootSourceOverrideEnabled": o.Enabled, "BootSourceOverrideTarget": o.Target, "BootSourceOverrideMode": bootMode(o.UEFI),
		"BootSourceOverrideEnabled@Redfish.AllowableValues": enabled,
		"BootSourceOverrideTarget@Redfish.AllowableValues":  s.targets(),
		"BootSourceOverrideMode@Redfish.AllowableValues":    []string{"Legacy", "UEFI"},
		"BootOptions": linkTo("Systems", s.p.System, "BootOptions"), "BootOrder": order,
	}
}

func bootMode(uefi bool) string {
	if uefi {
		return "UEFI"
	}
	return "Legacy"
}

// targets are the boot targets that this BMC takes.
func (s *server) targets() []chassis.Target {
	return slices.DeleteFunc(slices.Clone(s.p.Targets), func(t chassis.Target) bool {
		return s.q.BootRejectsPXE && t == chassis.BootPXE || s.q.BootLasts && t == chassis.BootNone
	})
}

// writableBoot are the properties of Boot that a client may set.
var writableBoot = []string{"BootSourceOverrideTarget", "BootSourceOverrideEnabled", "BootSourceOverrideMode"}

// readOnlyBoot are properties of Boot that clients send back as they read them.
var readOnlyBoot = []string{"BootOptions", "BootOrder", "BootNext", "AliasBootOrder", "UefiTargetBootSourceOverride",
	"AutomaticRetryConfig", "AutomaticRetryAttempts", "RemainingAutomaticRetryAttempts", "StopBootOnFault", "TrustedModuleRequiredToBoot",
	"Certificates", "BootOrderPropertySelection", "HttpBootUri"}

// setBoot writes the Boot object of a PATCH; when it is wrong it has answered.
func (c *call) setBoot(o obj) bool {
	s := c.s
	if !c.only(o, slices.Concat(writableBoot, readOnlyBoot)...) {
		return false
	}
	set, ok := c.texts(o, writableBoot)
	if !ok {
		return false
	}
	if s.q.BootNeedsFullObject {
		for _, name := range writableBoot {
			if _, has := set[name]; !has {
				c.fail("PropertyMissing", name)
				return false
			}
		}
	}
	if s.q.BootBusyInPOST && s.c.Phase() == "POST" {
		c.w.Header().Set("Retry-After", "30")
		c.fail("ResourceInUse")
		return false
	}
	next := s.mergeBoot(set)
	how, hasMode := set["BootSourceOverrideMode"]
	return c.checkBoot(next, how, hasMode) && c.keepBoot(next)
}

// mergeBoot is the override with what a PATCH sets.
func (s *server) mergeBoot(set map[string]string) chassis.Override {
	target, hasTarget := set["BootSourceOverrideTarget"]
	enabled, hasEnabled := set["BootSourceOverrideEnabled"]
	how, hasMode := set["BootSourceOverrideMode"]
	next := s.c.Override()
	if hasTarget {
		next.Target = chassis.Target(target)
	}
	if hasEnabled {
		next.Enabled = enabled
	}
	if s.q.BootLasts {
		next.Enabled = "Continuous"
	}
	if hasMode {
		next.UEFI = how == "UEFI"
	} else if s.q.BootModeReverts && (hasTarget || hasEnabled) {
		next.UEFI = false
	}
	return next
}

// checkBoot compares an override with what is allowed.
func (c *call) checkBoot(next chassis.Override, how string, hasMode bool) bool {
	switch {
	case !slices.Contains(c.s.targets(), next.Target):
		c.fail("PropertyValueNotInList", string(next.Target), "BootSourceOverrideTarget")
	case next.Enabled == "Continuous" && c.s.q.BootRejectsContinuous:
		c.fail("PropertyValueNotInList", next.Enabled, "BootSourceOverrideEnabled")
	case hasMode && how != "UEFI" && how != "Legacy":
		c.fail("PropertyValueNotInList", how, "BootSourceOverrideMode")
	default:
		return true
	}
	return false
}

func (c *call) keepBoot(next chassis.Override) bool {
	if c.s.q.LoseBoot {
		return true
	}
	if err := c.s.c.SetOverride(next); err != nil {
		c.fail("PropertyValueNotInList", next.Enabled, "BootSourceOverrideEnabled")
		return false
	}
	return true
}

// bootOption is one entry of the firmware's boot order.
type bootOption struct{ id, name, path string }

// bootOptions is the firmware's boot order: every port by PXE and by HTTP, then
// the disk.
func (s *server) bootOptions() []bootOption {
	var all []bootOption
	add := func(name, path string) {
		all = append(all, bootOption{fmt.Sprintf("Boot%04X", len(all)), name, path})
	}
	for i, n := range s.o.Hardware.NICs {
		mac := strings.ToUpper(strings.ReplaceAll(n.MAC.String(), ":", ""))
		if !s.q.BootRejectsPXE {
			add("UEFI PXEv4 (MAC:"+mac+")", fmt.Sprintf("PciRoot(0x0)/Pci(0x1,0x%x)/MAC(%s,0x1)/IPv4(0.0.0.0)", i, mac))
		}
		add("UEFI HTTPv4 (MAC:"+mac+")", fmt.Sprintf("PciRoot(0x0)/Pci(0x1,0x%x)/MAC(%s,0x1)/IPv4(0.0.0.0)/Uri()", i, mac))
	}
	add("UEFI OS", `HD(1,GPT)/\EFI\BOOT\BOOTX64.EFI`)
	return all
}

func getBootOptions(c *call) obj {
	var ids []string
	for _, x := range c.s.bootOptions() {
		ids = append(ids, x.id)
	}
	return c.collection("BootOption", "Boot Option Collection", ids)
}

func getBootOption(c *call) obj {
	for _, x := range c.s.bootOptions() {
		if x.id == c.args[0] {
			return obj{"@odata.type": "#BootOption.v1_0_4.BootOption", "Id": x.id, "Name": "Boot Option", "BootOptionEnabled": true,
				"BootOptionReference": x.id, "DisplayName": x.name, "UefiDevicePath": x.path}
		}
	}
	return nil
}

func getSecureBoot(c *call) obj {
	current, on := "Disabled", c.s.o.SecureBoot != nil && c.s.o.SecureBoot()
	if on {
		current = "Enabled"
	}
	o := obj{"@odata.type": "#SecureBoot.v1_1_0.SecureBoot", "Id": "SecureBoot", "Name": "UEFI Secure Boot",
		"SecureBootEnable": on, "SecureBootCurrentBoot": current, "SecureBootMode": "UserMode"}
	if c.databases() != nil {
		o["SecureBootDatabases"] = obj{"@odata.id": c.path + "/SecureBootDatabases"}
	}
	return o
}
