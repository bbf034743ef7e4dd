// SPDX-License-Identifier: Apache-2.0

// Package sonic is the management side of virtual SONiC switches: a CONFIG_DB as
// delivered, and the commands that read and change it, over SSH. It forwards
// nothing: what a switch carries belongs to package wiring. Limits: the tables that
// package yang has rules for are validated by these, others not at all; nothing is
// sorted into steps; services do not restart.
package sonic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/fabric/switchos/sonic/yang"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
)

// startupFile is what a switch has after a reboot.
const startupFile = "/etc/sonic/config_db.json"

// db is a CONFIG_DB: tables, keys, fields; a field is text or a list of texts.
type db = map[string]any

// Port is a port as the platform has it.
type Port struct {
	Name  string // Ethernet0
	Alias string // etp1
	Index int    // on the panel
	Lanes int
	Speed int // Mb/s
}

// Config is what a switch is made with.
type Config struct {
	Name     string // in the site, for the host key
	SKU      string
	MAC      string
	Ports    []Port
	User     string
	Password string // "": keys only
	Seed     uint64
	Clock    clock.Clock
	Show     map[string]func() string // further show commands, such as "lldp table"
}

// Switch is one switch. It is safe for concurrent use.
type Switch struct {
	cfg Config

	mu     sync.Mutex // guards what follows
	config db
	files  map[string][]byte // by absolute name
	points map[string]db     // checkpoints
	stuck  map[string]int    // a priority that a port's entry pauses whatever is written
	cut    bool              // its management port has no link
	last   int               // process id
}

// New makes a switch as it is delivered: named "sonic", its ports up, nothing on
// them.
func New(c Config) *Switch {
	ports := db{}
	for i, p := range c.Ports {
		var lanes []string
		for l := range p.Lanes {
			lanes = append(lanes, strconv.Itoa(i*p.Lanes+l+1))
		}
		ports[p.Name] = db{"alias": p.Alias, "index": strconv.Itoa(p.Index), "lanes": strings.Join(lanes, ","), "speed": strconv.Itoa(p.Speed), "mtu": "9100", "admin_status": "up"}
	}
	config := db{
		"DEVICE_METADATA": db{"localhost": db{"hostname": "sonic", "hwsku": c.SKU, "mac": c.MAC, "platform": "x86_64-virtual-r0", "type": "LeafRouter",
			"docker_routing_config_mode": "separated", "default_bgp_status": "up", "buffer_model": "traditional"}},
		"PORT":               ports,
		"CRM":                db{"Config": db{"polling_interval": "300"}},
		"FLEX_COUNTER_TABLE": db{"PORT": db{"FLEX_COUNTER_STATUS": "enable"}},
	}
	s := &Switch{cfg: c, config: config, points: map[string]db{}, stuck: map[string]int{}, last: 1000}
	s.files = map[string][]byte{startupFile: dumpConfig(config)}
	return s
}

// StickPause makes the entry of a port pause one more priority than is written into
// it, as a second program does that writes it too. It reports whether there is such
// a port.
func (s *Switch) StickPause(port string, priority int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.config["PORT"].(db)[port]; !is {
		return false
	}
	s.stuck[port] = priority
	resetStuck(s.config, s.stuck)
	return true
}

// Field is a field of the running configuration; "" where it is not there.
func (s *Switch) Field(table, key, field string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _ := s.config[table].(db)
	e, _ := t[key].(db)
	text, _ := e[field].(string)
	return text
}

// SetField sets a field of the running configuration, as an operator does on the switch; "" takes it
// out. It reports whether the switch has such a key.
func (s *Switch) SetField(table, key, field, value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _ := s.config[table].(db)
	e, there := t[key].(db)
	switch {
	case !there:
	case value == "":
		delete(e, field)
	default:
		e[field] = value
	}
	return there
}

// RemoveKey takes a key out of the running configuration, as another breakout mode does with a port. It
// reports whether the switch had such a key.
func (s *Switch) RemoveKey(table, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _ := s.config[table].(db)
	_, there := t[key]
	delete(t, key)
	return there
}

// Cut pulls the cable of the management port, or plugs it in again: who asks is not answered.
func (s *Switch) Cut(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

// isCut reports whether the management port has no link.
func (s *Switch) isCut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// Saved is what the switch has after a reboot, as a file.
func (s *Switch) Saved() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.files[startupFile])
}

// resetStuck is what the second program does.
func resetStuck(c db, stuck map[string]int) {
	maps_, _ := c["PORT_QOS_MAP"].(db)
	for port, priority := range stuck {
		e, _ := maps_[port].(db)
		now, is := e["pfc_enable"].(string)
		if !is || slices.Contains(strings.Split(now, ","), strconv.Itoa(priority)) {
			continue
		}
		e["pfc_enable"] = strings.Trim(now+","+strconv.Itoa(priority), ",")
	}
}

// dumpConfig prints a CONFIG_DB as sonic-cfggen does: sorted, four blanks deep.
func dumpConfig(c db) []byte {
	b, err := json.MarshalIndent(c, "", "    ")
	if err != nil {
		return nil // cannot be: maps of text
	}
	return append(b, '\n')
}

// cloneValue copies a CONFIG_DB.
func cloneValue(v any) any {
	switch v := v.(type) {
	case db:
		out := make(db, len(v))
		for k, x := range v {
			out[k] = cloneValue(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = cloneValue(x)
		}
		return out
	}
	return v
}

// validateConfig says what of a configuration the switch does not load: the first rule of
// the YANG models that it breaks.
func validateConfig(c db) error {
	problems := yang.Check(c, yang.Whole)
	if len(problems) == 0 {
		return nil
	}
	return errkind.New(errkind.Refused, "Given patch will produce invalid config. Error: Data Loading Failed\n%s", problems[0])
}

// emptyTables lists tables without keys, which redis cannot hold.
func emptyTables(c db) (list []string) {
	for _, table := range slices.Sorted(maps.Keys(c)) {
		if keys, is := c[table].(db); is && len(keys) == 0 {
			list = append(list, table)
		}
	}
	return list
}

func formatChanges(n int) string {
	if n == 1 {
		return fmt.Sprintf("%d change", n)
	}
	return fmt.Sprintf("%d changes", n)
}
