// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/natural"
)

// Difference is one field that a switch has otherwise than the site says.
type Difference struct {
	Switch string // its name in the site
	Table  string
	Key    string
	Field  string // "": the key is not there
	Want   string
	Have   string // "": it is not there
}

// String says the difference in words, by switch, port and field.
func (d Difference) String() string {
	at := d.Switch + " " + d.Table + "|" + d.Key
	switch {
	case d.Field == "":
		return at + " is not there"
	case d.Have == "":
		return fmt.Sprintf("%s: %s is not there, and should be %s", at, d.Field, d.Want)
	default:
		return fmt.Sprintf("%s: %s is %s, and should be %s", at, d.Field, d.Have, d.Want)
	}
}

// Change says what a patch does about the difference: table, key and field, what
// is there and what is to be.
func (d Difference) Change() string {
	at := d.Table + "|" + d.Key
	if d.Field == "" {
		return at + ": new"
	}
	return fmt.Sprintf("%s %s: %s -> %s", at, d.Field, orNone(d.Have), d.Want)
}

// PortOf is the port of the fabric that the difference is about; "": the switch as a
// whole.
func (s *Switch) PortOf(d Difference) string {
	name, _, _ := strings.Cut(d.Key, "|")
	if d.Table == "CABLE_LENGTH" {
		name = d.Field
	}
	if slices.ContainsFunc(s.Ports, func(p Port) bool { return p.Name == name }) {
		return name
	}
	return ""
}

// Without is the switch as if it had no such ports: what is left can be compared
// and patched by itself.
func (s *Switch) Without(ports []string) *Switch {
	left := *s
	left.Ports = slices.DeleteFunc(slices.Clone(s.Ports), func(p Port) bool { return slices.Contains(ports, p.Name) })
	return &left
}

// Absent lists the ports of the fabric that the switch does not have: another
// model, or another breakout mode. A patch cannot make them.
func (s *Switch) Absent(have Config) (list []string) {
	for _, p := range s.Ports {
		if _, is := have["PORT"][p.Name]; !is {
			list = append(list, p.Name)
		}
	}
	return list
}

// exact are fields that are a difference where they are not wanted: what is
// paused of a port of the fabric and should not be.
var exact = map[string][]string{"PORT_QOS_MAP": {"pfc_enable", "pfcwd_sw_enable"}}

// Compare says what a switch has otherwise than it should. What the site says
// nothing about is not compared, but that no further priority of a port of the
// fabric may be paused.
func (s *Switch) Compare(have Config) []Difference {
	var list []Difference
	want := s.Render()
	for _, table := range slices.Sorted(maps.Keys(want)) {
		for _, key := range slices.SortedFunc(maps.Keys(want[table]), natural.Compare) {
			e, known := have[table][key]
			if !known {
				list = append(list, Difference{Switch: s.Switch.Name, Table: table, Key: key})
				continue
			}
			list = append(list, s.fields(table, key, want[table][key], e)...)
		}
	}
	return list
}

func (s *Switch) fields(table, key string, want, have Entry) (list []Difference) {
	names := slices.Collect(maps.Keys(want))
	for _, extra := range exact[table] {
		if _, wanted := want[extra]; !wanted && have[extra] != "" {
			names = append(names, extra)
		}
	}
	slices.SortFunc(names, natural.Compare)
	for _, name := range names {
		if !sameValue(name, want[name], have[name]) {
			list = append(list, Difference{s.Switch.Name, table, key, name, orNone(want[name]), have[name]})
		}
	}
	return list
}

func orNone(s string) string {
	return cmp.Or(s, "none")
}

// sameValue compares two values: numbers of lists in any order, and words in any case.
func sameValue(field, want, have string) bool {
	if strings.HasPrefix(field, "pfc") || field == "pfcwd_sw_enable" {
		return slices.Equal(sortList(want), sortList(have))
	}
	return strings.EqualFold(want, have)
}

func sortList(list string) []string {
	if list == "" {
		return nil
	}
	parts := strings.Split(list, ",")
	slices.Sort(parts)
	return parts
}

// Patch makes of what differs a JSON patch (RFC 6902), which `config apply-patch`
// takes. It adds and replaces, and removes only a pause that should not be.
// Nothing differs: nil.
func (s *Switch) Patch(have Config) []byte {
	var ops []operation
	made := map[string]bool{}
	want := s.Render()
	for _, d := range s.Compare(have) {
		table, key := jsonPointer(d.Table), jsonPointer(d.Table, d.Key)
		switch {
		case have[d.Table] == nil && !made[table]:
			ops = append(ops, operation{"add", table, tableValues(want[d.Table])})
			made[table] = true
		case have[d.Table] == nil:
		case d.Field == "":
			ops = append(ops, operation{"add", key, want[d.Table][d.Key].values()})
		case want[d.Table][d.Key][d.Field] == "":
			ops = append(ops, operation{Op: "remove", Path: jsonPointer(d.Table, d.Key, d.Field)})
		default:
			op := "replace"
			if d.Have == "" {
				op = "add"
			}
			ops = append(ops, operation{op, jsonPointer(d.Table, d.Key, d.Field), want[d.Table][d.Key].values()[d.Field]})
		}
	}
	if ops == nil {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(ops) != nil {
		return nil // cannot be: maps of text
	}
	return b.Bytes()
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func tableValues(keys map[string]Entry) map[string]any {
	out := map[string]any{}
	for key, e := range keys {
		out[key] = e.values()
	}
	return out
}

// jsonPointer returns a JSON pointer (RFC 6901), in which ~ and / are escaped.
func jsonPointer(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(p, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// QoS is what a switch does with the packets of one port, by its own tables,
// whatever they are called.
type QoS struct {
	Priority map[int]int `json:"priority,omitempty"` // of DSCPs
	Paused   []int       `json:"paused,omitempty"`   // priorities with PFC
	Watched  bool        `json:"watched,omitempty"`  // the PFC watchdog looks at the port
	Marked   []int       `json:"marked,omitempty"`   // queues with ECN
	Group    map[int]int `json:"group,omitempty"`    // priority group of traffic classes
	Queue    map[int]int `json:"queue,omitempty"`    // of traffic classes
	MTU      int         `json:"mtu,omitempty"`      // bytes of IP; 0: not there
}

// QoSOf follows the tables of a switch for one port.
func (c Config) QoSOf(port string) QoS {
	m := c["PORT_QOS_MAP"][port]
	if m == nil {
		m = c["PORT_QOS_MAP"]["global"]
	}
	q := QoS{
		Priority: mapNumbers(c["DSCP_TO_TC_MAP"][m["dscp_to_tc_map"]]), Group: mapNumbers(c["TC_TO_PRIORITY_GROUP_MAP"][m["tc_to_pg_map"]]),
		Queue: mapNumbers(c["TC_TO_QUEUE_MAP"][m["tc_to_queue_map"]]),
	}
	for _, p := range sortList(m["pfc_enable"]) {
		if n, err := strconv.Atoi(strings.TrimSpace(p)); err == nil {
			q.Paused = append(q.Paused, n)
		}
	}
	action := c["PFC_WD"][port]["action"]
	q.Watched = action != "" && action != "disable"
	for n := range 8 {
		profile := c["QUEUE"][port+"|"+strconv.Itoa(n)]["wred_profile"]
		if ecn := c["WRED_PROFILE"][profile]["ecn"]; ecn != "" && ecn != "ecn_none" {
			q.Marked = append(q.Marked, n)
		}
	}
	q.MTU, _ = strconv.Atoi(c["PORT"][port]["mtu"])
	return q
}

func mapNumbers(e Entry) map[int]int {
	out := make(map[int]int, len(e))
	for k, v := range e {
		a, err := strconv.Atoi(k)
		b, err2 := strconv.Atoi(v)
		if err == nil && err2 == nil {
			out[a] = b
		}
	}
	return out
}
