// SPDX-License-Identifier: Apache-2.0

package chassis

import (
	"fmt"
	"maps"
	"slices"
)

// Target is where the next boot goes, in Redfish's words (BootSource).
type Target string

// The boot targets a chassis knows.
const (
	BootNone      Target = "None"
	BootPXE       Target = "Pxe"
	BootUEFIHTTP  Target = "UefiHttp"
	BootHDD       Target = "Hdd"
	BootCD        Target = "Cd"
	BootBIOSSetup Target = "BiosSetup"
	BootUSB       Target = "Usb"
)

// Override is the boot source override. Enabled is "Disabled", "Once" or
// "Continuous"; UEFI is the boot mode, false for legacy.
type Override struct {
	Enabled string
	Target  Target
	UEFI    bool
}

// Override returns the boot override as it is kept in flash.
func (c *Chassis) Override() Override {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.override
}

// SetOverride keeps a boot override. "Disabled" or the target "None" clears it.
// errValue for other words than those of the type.
func (c *Chassis) SetOverride(o Override) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o.Enabled {
	case "Disabled", "Once", "Continuous":
	default:
		return fmt.Errorf("%w: boot override enabled %q", errValue, o.Enabled)
	}
	switch o.Target {
	case BootNone, BootPXE, BootUEFIHTTP, BootHDD, BootCD, BootBIOSSetup, BootUSB:
	default:
		return fmt.Errorf("%w: boot target %q", errValue, string(o.Target))
	}
	if o.Enabled == "Disabled" || o.Target == BootNone {
		o.Enabled, o.Target = "Disabled", BootNone
	}
	if !c.ignored["boot"] {
		c.override = o
	}
	return nil
}

// TakeBoot is called by the firmware at the end of POST: it returns the
// override and consumes a "Once".
func (c *Chassis) TakeBoot() Override {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.override
	if o.Enabled == "Once" {
		c.override.Enabled, c.override.Target = "Disabled", BootNone
	}
	return o
}

// BIOS returns the attributes in force and those that wait for the next POST
// (nil when none do). Neither map may be changed.
func (c *Chassis) BIOS() (current, pending map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bios, c.pending
}

// SetBIOS adds settings to those that wait for the next POST. errValue, and
// nothing is kept, when an attribute is not one of the board's.
func (c *Chassis) SetBIOS(attributes map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(attributes)) {
		if _, ok := c.bios[k]; !ok {
			return fmt.Errorf("%w: BIOS attribute %q", errValue, k)
		}
	}
	if c.ignored["bios"] || len(attributes) == 0 {
		return nil
	}
	next := make(map[string]string, len(c.pending)+len(attributes))
	maps.Copy(next, c.pending)
	maps.Copy(next, attributes)
	c.pending = next
	return nil
}

// Keys returns the certificates in the firmware's db, in PEM, and those that wait for the next
// POST. Neither slice may be changed.
func (c *Chassis) Keys() (current, pending []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys, c.newKeys
}

// Enrol adds a certificate to those that wait for the next POST.
func (c *Chassis) Enrol(certificate string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ignored["keys"] {
		c.newKeys = append(slices.Clone(c.newKeys), certificate)
	}
}

// ApplyBIOS is called by the firmware in POST: what was pending is in force.
func (c *Chassis) ApplyBIOS() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys, c.newKeys = slices.Concat(c.keys, c.newKeys), nil
	if c.pending == nil {
		return
	}
	next := maps.Clone(c.bios)
	maps.Copy(next, c.pending)
	c.bios, c.pending = next, nil
}

// Components returns the firmware inventory; the slice may not be changed.
func (c *Chassis) Components() []Component {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.components
}

// Update stages a component's firmware; it is in force after the next power-on
// or reset, or after Activate. errValue for an unknown component, errUnsupported
// for one that cannot be updated.
func (c *Chassis) Update(id, version string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.components, func(k Component) bool { return k.ID == id })
	switch {
	case i < 0:
		return fmt.Errorf("%w: firmware component %q", errValue, id)
	case !c.components[i].Updateable:
		return fmt.Errorf("%w: firmware component %q is not updateable", errUnsupported, id)
	case version == "":
		return fmt.Errorf("%w: firmware component %q: empty version", errValue, id)
	}
	if c.updates == nil {
		c.updates = map[string]string{}
	}
	c.updates[id] = version
	return nil
}

// Activate puts one component's staged firmware in force at once, as a BMC does
// with its own.
func (c *Chassis) Activate(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.updates[id]; ok {
		delete(c.updates, id)
		c.install(map[string]string{id: v})
	}
}

// Staged returns the version that waits for the next reset, or "".
func (c *Chassis) Staged(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.updates[id]
}

// activate puts all staged firmware in force. c.mu is held.
func (c *Chassis) activate() {
	if len(c.updates) > 0 {
		c.install(c.updates)
		c.updates = nil
	}
}

// install replaces versions in the inventory. c.mu is held.
func (c *Chassis) install(versions map[string]string) {
	c.components = slices.Clone(c.components)
	for i := range c.components {
		k := &c.components[i]
		if v, ok := versions[k.ID]; ok {
			k.Version = v
			c.record("OK", "Version Change", k.Name+" firmware updated to "+v)
		}
	}
}

// LoseWrites makes the flash keep no write of "boot", "bios", "keys" or "accounts": it
// is answered with success and read back as before. Other words do nothing.
func (c *Chassis) LoseWrites(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ignored == nil {
		c.ignored = map[string]bool{}
	}
	c.ignored[what] = true
}

// Media returns what is inserted into the virtual media slots, slot to URL.
func (c *Chassis) Media() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.media)
}

// SetMedia inserts an image into a virtual media slot, or ejects it when the
// URL is empty. Which slots there are is the front end's affair.
func (c *Chassis) SetMedia(slot, url string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.media, slot)
	if url == "" {
		return
	}
	if c.media == nil {
		c.media = map[string]string{}
	}
	c.media[slot] = url
}
