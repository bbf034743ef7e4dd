// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"path"
	"strings"
)

// slots reports whether {kind}/{owner} is where the virtual media are.
func (c *call) slots() bool {
	m := c.s.p.Media
	return m.Parent == c.args[0] && c.s.owner(m.Parent) == c.args[1]
}

// slot finds the virtual media device that the path names.
func (c *call) slot() (Slot, bool) {
	if c.slots() {
		for _, x := range c.s.p.Slots {
			if x.ID == c.args[2] {
				return x, true
			}
		}
	}
	return Slot{}, false
}

func getSlots(c *call) obj {
	if !c.slots() {
		return nil
	}
	return c.collection("VirtualMedia", "Virtual Media Services", collectIDs(c.s.p.Slots, func(_ int, x Slot) string { return x.ID }))
}

func getSlot(c *call) obj {
	x, found := c.slot()
	if !found {
		return nil
	}
	image := c.s.c.Media()[x.ID]
	here := joinURI(c.args[0], c.args[1], "VirtualMedia", x.ID)
	o := obj{"@odata.type": "#VirtualMedia.v1_6_0.VirtualMedia", "Id": x.ID, "Name": "Virtual Removable Media", "MediaTypes": x.Types,
		"Inserted": image != "", "WriteProtected": true, "ConnectedVia": "NotConnected", "Image": nil, "ImageName": nil, "Status": statusOK(),
		"Actions": obj{"#VirtualMedia.InsertMedia": obj{"target": here + "/Actions/VirtualMedia.InsertMedia"},
			"#VirtualMedia.EjectMedia": obj{"target": here + "/Actions/VirtualMedia.EjectMedia"}}}
	if image != "" {
		o["Image"], o["ImageName"], o["ConnectedVia"] = image, path.Base(image), "URI"
	}
	return o
}

func insertMedia(c *call) {
	x, found := c.slot()
	if !found {
		c.missing()
		return
	}
	o, ok := c.body()
	if !ok {
		return
	}
	if c.s.q.MediaMinimal {
		for k := range o {
			if k != "Image" {
				c.fail("ActionParameterNotSupported", k, "VirtualMedia.InsertMedia")
				return
			}
		}
	}
	image, has, ok := c.text(o, "Image")
	switch {
	case !ok:
		return
	case !has:
		c.fail("ActionParameterMissing", "VirtualMedia.InsertMedia", "Image")
	case !strings.Contains(image, "://"):
		c.fail("PropertyValueFormatError", image, "Image")
	case c.s.c.Media()[x.ID] != "":
		c.failWith(400, "ResourceInUse")
	default:
		c.s.c.SetMedia(x.ID, image)
		c.done(c.s.p.PatchStatus)
	}
}

func ejectMedia(c *call) {
	x, found := c.slot()
	if !found {
		c.missing()
		return
	}
	c.s.c.SetMedia(x.ID, "")
	c.done(c.s.p.PatchStatus)
}
