// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
)

// defaultKey is that of the partition that there always is.
const defaultKey = 0x7fff

// partitions are the P_Key tables of all ports by partitions.conf, as
// osm_prtn_config.c reads it: an error anywhere drops all of the file, an unknown
// membership is limited, a port that is not there is nothing.
func (m *Manager) partitions(ports []Port) map[addr.GUID][]uint16 {
	file := m.conf["partition_config_file"]
	text, ok := m.files[file]
	tables := map[addr.GUID][]uint16{managerGUID + 1: {defaultKey | 0x8000}}
	if ok {
		ok = m.read(text, ports, tables)
		if !ok {
			m.logf(0x01, "Partition configuration in error; retrying with default config")
		}
	}
	if !ok {
		for _, p := range ports {
			tables[p.GUID] = []uint16{defaultKey | 0x8000}
		}
	}
	for g := range tables {
		slices.Sort(tables[g])
		tables[g] = slices.Compact(tables[g])
	}
	return tables
}

// read enters what a partitions.conf says in the tables. It returns false when the file
// has an error, which it has logged.
func (m *Manager) read(text string, ports []Port, tables map[addr.GUID][]uint16) bool {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		b.WriteString(line)
		b.WriteByte('\n')
	}
	r := partitionReader{ports: ports, present: map[addr.GUID]bool{managerGUID + 1: true}, tables: tables}
	for _, p := range ports {
		r.present[p.GUID] = true
	}
	defaulted := false
	for statement := range strings.SplitSeq(b.String(), ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		head, list, ok := strings.Cut(statement, ":")
		key, full, good := parseHeader(head)
		if !ok || !good {
			m.logf(0x01, "parse_part_conf: PARSE ERROR: bad partition definition")
			return false
		}
		defaulted = defaulted || key == defaultKey
		for spec := range strings.SplitSeq(list, ",") {
			if !r.member(spec, key, full) {
				m.logf(0x01, "parse_part_conf: PARSE ERROR: bad PortGUID")
				return false
			}
		}
	}
	if !defaulted {
		for _, p := range ports {
			addPKey(tables, p.GUID, defaultKey)
		}
	}
	return true
}

// partitionReader enters the members of partitions in the tables of ports.
type partitionReader struct {
	ports   []Port
	present map[addr.GUID]bool // ports, and the manager's own
	tables  map[addr.GUID][]uint16
}

// member enters one word of a partition's list, such as "0x2c90300a1b2c3=full" or "ALL";
// full is the membership where it gives none. It returns false when the port is no GUID.
func (r partitionReader) member(spec string, key uint16, full bool) bool {
	name, member, given := strings.Cut(strings.TrimSpace(spec), "=")
	if given && strings.TrimSpace(member) == "full" || !given && full {
		key |= 0x8000
	}
	switch name = strings.TrimSpace(name); name {
	case "", "ALL_SWITCHES", "ALL_ROUTERS":
	case "ALL", "ALL_CAS":
		for _, p := range r.ports {
			addPKey(r.tables, p.GUID, key)
		}
	case "SELF":
		addPKey(r.tables, managerGUID+1, key)
	default:
		g, err := strconv.ParseUint(name, 0, 64)
		if err != nil {
			return false
		}
		if r.present[addr.GUID(g)] {
			addPKey(r.tables, addr.GUID(g), key)
		}
	}
	return true
}

// parseHeader reads "name=0x8001, ipoib, defmember=full".
func parseHeader(text string) (key uint16, full, ok bool) {
	for i, field := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		if i == 0 {
			k, err := strconv.ParseUint(strings.TrimSpace(value), 0, 16)
			if err != nil {
				return 0, false, false
			}
			key = uint16(k) & defaultKey
		}
		full = full || name == "defmember" && value == "full"
	}
	return key, full, true
}

// addPKey enters a P_Key; a full member needs no limited entry beside.
func addPKey(tables map[addr.GUID][]uint16, g addr.GUID, key uint16) {
	for i, k := range tables[g] {
		if k&defaultKey == key&defaultKey {
			tables[g][i] |= key
			return
		}
	}
	tables[g] = append(tables[g], key)
}
