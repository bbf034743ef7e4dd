// SPDX-License-Identifier: Apache-2.0

package wire

// BootOrder is the boot order of UEFI firmware as it was read back. It is evidence,
// not a promise: firmware may answer one order and use another.
type BootOrder struct {
	First   string      `json:"first"`             // what was asked for: BootDisk or BootNetwork; "" on an installed node
	Entries []BootEntry `json:"entries,omitempty"` // those that are tried, in order
	Current int         `json:"current"`           // number of the entry that started the running system; -1: not known
	Changed bool        `json:"changed,omitempty"`
	Problem string      `json:"problem,omitempty"` // why the order is not as asked for
}

// BootEntry is one boot entry. Name is text from outside.
type BootEntry struct {
	Number    int    `json:"number"` // of the Boot#### variable
	Name      string `json:"name"`
	Active    bool   `json:"active"`
	Partition string `json:"partition,omitempty"` // GUID of the partition that it starts from
	MAC       string `json:"mac,omitempty"`       // of the NIC that it starts from
}

// Entry returns the entry of a number.
func (o *BootOrder) Entry(number int) (BootEntry, bool) {
	for _, e := range o.Entries {
		if e.Number == number {
			return e, true
		}
	}
	return BootEntry{}, false
}
