// SPDX-License-Identifier: Apache-2.0

// Package vendorlist reads the list that a vendor sends with a delivery, a CSV
// file with whatever headers, and makes the site's manifest of it: the columns
// that the site's files read, every value in one form, every mistake of the list
// said at once. It is pure and safe for concurrent use. Values of passwords are
// in the manifest and nowhere else: no problem, question or change repeats one.
package vendorlist

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Field is a column of the manifest.
type Field string

// The fields, by their names in the manifest.
const (
	Rack            Field = "rack"
	Unit            Field = "unit"
	Serial          Field = "serial"
	BMCMAC          Field = "bmc_mac"
	BootMAC         Field = "boot_mac"
	FactoryPassword Field = "factory_password"
	UUID            Field = "uuid"
	Name            Field = "name"
)

// Fields are all fields in the order of the manifest's columns.
func Fields() []Field {
	return []Field{Rack, Unit, Serial, BMCMAC, BootMAC, FactoryPassword, UUID, Name}
}

// required are the fields without which a node cannot be described. The factory
// password is not: some vendors have one for all their nodes.
var required = []Field{Rack, Unit, Serial, BMCMAC, BootMAC}

// Required reports whether a list must have the field.
func (f Field) Required() bool { return slices.Contains(required, f) }

// Problem is one mistake of a list.
type Problem struct {
	Line   int    `json:"line,omitempty"`   // of the file, from 1; 0: the whole list
	Column string `json:"column,omitempty"` // header of the list
	Text   string `json:"text"`             // what is wrong and what to do, a sentence
}

// Mapping says which column of a list holds a field, by index from 0. A field
// that is absent is in no column.
type Mapping map[Field]int

// Question is a field that more than one column may hold, or none for certain.
type Question struct {
	Field      Field       `json:"field"`
	Candidates []Candidate `json:"candidates"` // columns that it may be, never none
}

// Candidate is a column that may hold a field.
type Candidate struct {
	Column int      `json:"column"` // index from 0
	Header string   `json:"header"`
	Sample []string `json:"sample,omitempty"` // a few values; none of passwords
}

// synonyms are the usual headers of each field in small letters, without
// anything but letters and digits. A header is a field's when it is one of them,
// or, less surely, when it contains one that is long.
var synonyms = map[Field][]string{
	Rack: {"rack", "rackname", "rackid", "rackno", "racknum", "racknumber", "racklocation", "cabinet", "cabinetname", "cabinetid", "cabinetno", "cabinetnumber", "cab"},
	Unit: {"unit", "u", "ru", "upos", "uposition", "uposn", "ulocation", "unumber", "uno", "uheightposition", "rackunit", "rackposition", "rackpos", "racku", "rackru", "startu",
		"startunit", "startingu", "bottomu", "lowestu", "elevation", "ruposition", "rulocation", "position", "slot"},
	Serial: {"serial", "serialnumber", "serialno", "serialnum", "sn", "servicetag", "svctag", "systemserial", "systemserialnumber", "systemsn", "chassisserial", "chassisserialnumber",
		"chassisserialno", "chassissn", "serverserial", "serverserialnumber", "serversn", "nodeserial", "nodeserialnumber", "nodesn", "productserial", "productserialnumber", "unitserialnumber", "unitsn"},
	BMCMAC: {"bmcmac", "bmcmacaddress", "bmcmacaddr", "bmclanmac", "bmcnicmac", "ipmimac", "ipmimacaddress", "ipmilanmac", "idracmac", "idracmacaddress", "ilomac", "ilomacaddress", "xccmac",
		"xccmacaddress", "bmc", "ipmi", "oobmac", "oobmacaddress", "managementmac", "managementmacaddress", "mgmtmac", "mgmtmacaddress", "redfishmac", "remotemanagementmac", "macbmc", "macipmi"},
	BootMAC: {"bootmac", "bootmacaddress", "bootnicmac", "pxemac", "pxemacaddress", "pxenicmac", "lan1mac", "lan1macaddress", "lan1", "maclan1", "nic1mac", "nic1macaddress", "nic1", "eth0mac", "eth0macaddress",
		"eth0", "mac1", "macaddress1", "mac", "macaddress", "hostmac", "hostmacaddress", "osmac", "port1mac", "primarymac", "onboardmac", "onboardlanmac", "lommac"},
	FactoryPassword: {"factorypassword", "factorypwd", "defaultpassword", "defaultpwd", "bmcpassword", "bmcpwd", "bmcpw", "bmcdefaultpassword", "bmcuniquepassword", "ipmipassword", "ipmipwd", "ipmidefaultpassword",
		"idracpassword", "ilopassword", "ilodefaultpassword", "adminpassword", "uniquepassword", "initialpassword", "password", "pwd", "passwd"},
	UUID: {"uuid", "systemuuid", "smbiosuuid", "nodeuuid", "serveruuid", "biosuuid"},
	Name: {"name", "hostname", "node", "nodename", "servername", "systemname", "host"},
}

// longEnough is the shortest synonym that counts inside of a longer header.
const longEnough = 5

// others are words of headers of parts: their serials and MACs are not those of
// the node. A header with one of them is a field's only when it is a synonym as
// a whole.
var others = []string{"motherboard", "mainboard", "baseboard", "mobo", "mb", "board", "psu", "psus", "power", "gpu", "gpus", "cpu", "dimm", "disk", "ssd", "nvme", "drive", "hca", "ib", "infiniband", "rdma",
	"switch", "pdu", "cable", "tpm", "dpu", "bluefield", "riser", "fan", "pallet", "box", "carton", "order", "po", "invoice", "asset", "height", "size", "weight"}

// further are headers of the second port and those after it.
var further = lazyregexp.New(`(lan|nic|port|mac|macaddress)([2-9]|1[0-9])|eth[1-9]`)

// Words that decide in a header of several.
var (
	rackWords     = []string{"rack", "cabinet"}
	passwordWords = []string{"password", "passwd", "pwd"}
	bmcWords      = []string{"bmc", "ipmi", "idrac", "ilo", "xcc", "oob", "mgmt", "management", "redfish"}
)

// normalHeader returns a header as small letters and digits.
func normalHeader(header string) string { return strings.Join(splitWords(header), "") }

// splitWords cuts a header into words of small letters and digits: "Chassis S/N" is
// chassis, s, n; "BmcMac" is bmc, mac.
func splitWords(header string) []string {
	var out []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			out = append(out, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	small := false
	for _, r := range header {
		letter, capital, digit := r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9'
		if !letter && !capital && !digit || capital && small && word.Len() > 1 { // "BmcMac", not "iDRAC"
			end()
		}
		if letter || capital || digit {
			word.WriteRune(r)
		}
		small = letter
	}
	end()
	return out
}

// matchHeader returns how surely a header is a field's: 0 not at all, 1 it contains a
// synonym, 2 it is one.
func matchHeader(header string) (field Field, sure int) {
	text := normalHeader(header)
	if text == "" {
		return "", 0
	}
	for _, f := range Fields() {
		if slices.Contains(synonyms[f], text) {
			return f, 2
		}
	}
	has := func(among []string) bool { return hasWord(header, among) }
	field = longestIn(text)
	switch {
	case has(others), further.MatchString(text), field == Serial && has(rackWords):
		return "", 0
	case has(passwordWords):
		return FactoryPassword, 1
	case has(bmcWords) && strings.Contains(text, "mac"):
		return BMCMAC, 1
	case field == "", has(bmcWords) && field == BootMAC:
		return "", 0
	}
	return field, 1
}

// longestIn is the field with the longest synonym that a text contains; "": none.
func longestIn(text string) (field Field) {
	longest := longEnough - 1
	for _, f := range Fields() {
		for _, s := range synonyms[f] {
			if len(s) > longest && strings.Contains(text, s) {
				field, longest = f, len(s)
			}
		}
	}
	return field
}

// hasWord reports whether a header has one of some words, with a number or
// without: PSU1 is psu.
func hasWord(header string, among []string) bool {
	return slices.ContainsFunc(splitWords(header), func(w string) bool { return slices.Contains(among, strings.TrimRight(w, "0123456789")) })
}
