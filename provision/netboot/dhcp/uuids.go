// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// TwoUUIDs is a MAC under which two machines ask within one boot attempt: one and the
// same program of a firmware says two UUIDs. It proves nothing against either, since
// anybody can send a datagram in the name of a MAC.
type TwoUUIDs struct {
	Client        boot.Client
	Attempt       string
	MAC           addr.MAC
	Program       string // a PXE firmware, UEFI x64
	First, Second string // as dmidecode shows them
	FirstAt       time.Time
	At            time.Time
	// Inventory is which of the two the inventory has; empty: neither, or it has none.
	Inventory string
}

// UUIDs remembers the first UUID that each program of a node says within an open boot
// attempt. Only what the same program says is compared: PXE, iPXE and GRUB may each
// send another form, or none. Its size is bounded by the number of known MACs and of
// programs with a name. The zero UUIDs is empty; it is safe for concurrent use.
type UUIDs struct {
	mu   sync.Mutex
	seen map[addr.MAC]*uuidRecord // guarded by mu
}

// uuidRecord is what was said under one MAC within one attempt.
type uuidRecord struct {
	attempt  string
	first    []firstUUID // one of each program, which are few
	reported bool        // the second UUID of the attempt
}

type program struct {
	http, ipxe bool
	arch       Arch
}

type firstUUID struct {
	program program
	uuid    [16]byte
	at      time.Time
}

// Observe takes over what a known client's packet says, and reports whether it is the
// first of its attempt that contradicts an earlier one.
func (u *UUIDs) Observe(c boot.Client, m addr.MAC, attempt string, class Class, now time.Time) (TwoUUIDs, bool) {
	if _, named := archNames[class.Arch]; c.Kind == boot.BMC || unknownUUID(class.UUID) || !class.Boots() || !class.HasArch || !named {
		return TwoUUIDs{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.of(m, attempt)
	p := program{class.HTTP, class.IPXE, class.Arch}
	i := slices.IndexFunc(s.first, func(f firstUUID) bool { return f.program == p })
	if i < 0 {
		s.first = append(s.first, firstUUID{p, class.UUID, now})
		return TwoUUIDs{}, false
	}
	first := s.first[i]
	if s.reported || first.uuid == class.UUID || first.uuid == swapUUID(class.UUID) {
		return TwoUUIDs{}, false
	}
	s.reported = true
	two := TwoUUIDs{Client: c, Attempt: attempt, MAC: m, Program: class.String(), First: formatUUID(first.uuid), Second: formatUUID(class.UUID), FirstAt: first.at, At: now}
	switch {
	case c.UUID == "":
	case sameUUID(c.UUID, first.uuid):
		two.Inventory = two.First
	case sameUUID(c.UUID, class.UUID):
		two.Inventory = two.Second
	}
	return two, true
}

// of is what a MAC said in an attempt. u.mu is held.
func (u *UUIDs) of(m addr.MAC, attempt string) *uuidRecord {
	s := u.seen[m]
	if s == nil || s.attempt != attempt {
		if u.seen == nil {
			u.seen = map[addr.MAC]*uuidRecord{}
		}
		s = &uuidRecord{attempt: attempt}
		u.seen[m] = s
	}
	return s
}

// unknownUUID reports whether bytes of option 97 name no machine: SMBIOS (DSP0134
// section 7.2.1) has all FFh for a UUID that is not present and all 00h for one that is
// not set, and firmware sends what is there.
func unknownUUID(u [16]byte) bool {
	return u == [16]byte{} || bytes.Count(u[:], []byte{0xff}) == len(u)
}
