// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"

	"github.com/ironrail/ironrail/provision/bmc/quirk"
)

// Identity is who BMC and node are. What the service does not report is "".
type Identity struct {
	Manufacturer string // of the node
	Model        string
	Serial       string // of the node, as on its label: SMBIOS type 1
	BoardSerial  string // SMBIOS type 2, where it is distinguished
	Chassis      string // serial number of the chassis
	UUID         string
	BIOS         string // version of the node's firmware
	BMCModel     string
	BMCFirmware  string   // version of the BMC's firmware, the maker's text
	Gaps         []string // what could not be read and why, one line each
}

// Identity reads who BMC and node are. Only a lost BMC, a refused account or an
// interruption is an error; what else cannot be read is a gap.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	s, err := c.system(ctx)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Manufacturer: OneLine(string(s.Manufacturer)), Model: OneLine(string(s.Model)), Serial: OneLine(string(s.SerialNumber)),
		UUID: OneLine(string(s.UUID)), BIOS: OneLine(string(s.BiosVersion))}
	if c.quirks.Has(quirk.SerialIsSKU) && s.SKU != "" {
		id.BoardSerial, id.Serial = id.Serial, OneLine(string(s.SKU))
	}
	var m struct{ Model, FirmwareVersion text }
	if err := c.optional(ctx, c.place.manager, c.place.managers, &m, "manager", &id); err != nil {
		return id, err
	}
	id.BMCModel, id.BMCFirmware = OneLine(string(m.Model)), OneLine(string(m.FirmwareVersion))
	var ch struct{ SerialNumber text }
	if err := c.optional(ctx, c.place.chassis, c.place.enclosures, &ch, "chassis", &id); err != nil {
		return id, err
	}
	id.Chassis = OneLine(string(ch.SerialNumber))
	return id, nil
}

// optional reads a resource that may be missing; that it is missing, or that several
// may be the node's, becomes a gap.
func (c *Client) optional(ctx context.Context, path string, unclear error, v any, what string, id *Identity) error {
	if unclear != nil {
		id.Gaps = append(id.Gaps, what+": "+unclear.Error())
		return nil
	}
	if path == "" {
		id.Gaps = append(id.Gaps, what+": the bmc shows none")
		return nil
	}
	_, err := c.get(ctx, path, v)
	if isStatus(err, http.StatusNotFound, http.StatusForbidden, http.StatusBadRequest, http.StatusInternalServerError, http.StatusMethodNotAllowed, http.StatusNotImplemented) {
		id.Gaps = append(id.Gaps, what+": "+err.Error())
		return nil
	}
	return err
}
