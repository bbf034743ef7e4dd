// SPDX-License-Identifier: Apache-2.0

// Package subnet is the InfiniBand side of a virtual rack: a subnet manager of the
// manner of opensm on the controller, and the programs that look at the fabric from
// there. It reads the files that it is given as opensm does, its silent mistakes
// included: after a syntax error in partitions.conf every port is a full member of
// the default partition and of nothing else. Links are those of the rack's cables.
package subnet

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/onnode"
)

// Port is one port of an HCA with its cable, as it is now.
type Port struct {
	Node   string // that it belongs to; empty: none of the site
	Name   string // what the HCA calls itself, such as "n1 mlx5_0"
	HCA    addr.GUID
	GUID   addr.GUID
	Switch string // where its cable ends; empty: no link
	Number int    // of the switch port
	Lanes  int    // that carry
	Speed  string // of a lane, such as NDR
}

// Trunk is one cable between two switches.
type Trunk struct {
	From, To         string // names of switches
	FromPort, ToPort int
	Lanes            int
	Speed            string
	Counted          [2]Counted // at From and at To
}

// Counted is what an end of a cable between two switches has counted. Data are bytes,
// errors of what arrived.
type Counted struct {
	XmitData, RcvData, XmitPackets, RcvPackets int64
	SymbolErrors, RcvErrors                    int64
}

// Switch is one switch of the fabric.
type Switch struct {
	Name  string // scoped
	Ports int
}

// Wiring tells how the fabric is plugged now. Its methods are safe for concurrent
// use and do not block.
type Wiring interface {
	Ports() []Port
	Trunks() []Trunk
	Switches() []Switch
}

// Manager is opensm with the programs of infiniband-diags on a controller. Its
// methods are safe for concurrent use.
type Manager struct {
	wiring   Wiring
	clock    clock.Clock
	standbys int

	mu     sync.Mutex // guards what follows
	files  map[string]string
	conf   map[string]string // options of the running opensm; nil: it does not run
	tables map[addr.GUID][]uint16
	lids   map[addr.GUID]int
	log    strings.Builder
	cut    bool      // the controller's HCA is not there
	ended  bool      // opensm ran here, and its process has ended
	other  addr.GUID // of a managed switch whose own subnet manager somebody has switched on; 0: none
}

// New makes a controller on which opensm is installed and does not run yet. As many
// others as standbys says have one that somebody started with the files rendered for
// it.
func New(w Wiring, c clock.Clock, standbys int) *Manager {
	return &Manager{wiring: w, clock: c, standbys: standbys, files: map[string]string{}, tables: map[addr.GUID][]uint16{}, lids: map[addr.GUID]int{}}
}

// GUIDOf is the GUID of a switch, made from its name.
func GUIDOf(name string) addr.GUID {
	h := fnv.New64a()
	fmt.Fprint(h, "switch ", name)
	return addr.GUID(h.Sum64()&0x0000ffffffffffff | 0xb0cf000000000000)
}

// managerGUID is the HCA of the controller.
const managerGUID addr.GUID = 0x946dae0300fffff0

// peer is one subnet manager of the fabric.
type peer struct {
	port     addr.GUID // that it runs on
	priority int
	state    int // as SMInfo has it
}

// The states of a subnet manager (IBTA, SMInfo).
const (
	standingBy = 2
	master     = 3
)

// otherPriority is that of a switch's own subnet manager which somebody has given the highest one.
const otherPriority = 15

// managers are this controller's subnet manager, its standbys, each of one priority less, and that of a
// switch; none where opensm was never started. The one with the highest priority is the master.
func (m *Manager) managers() (list []peer) {
	if m.conf == nil && !m.ended {
		return nil
	}
	if m.conf != nil {
		priority, _ := strconv.Atoi(m.conf["sm_priority"]) // absent: 0
		list = append(list, peer{managerGUID + 1, priority, standingBy})
	}
	for i := range m.standbys {
		priority, _ := strconv.Atoi(parseOptions(m.files["/etc/opensm/opensm.conf"])["sm_priority"])
		list = append(list, peer{managerGUID + 1 - addr.GUID(i+1)<<4, max(1, priority-i-1), standingBy})
	}
	if m.other != 0 {
		list = append(list, peer{m.other, otherPriority, standingBy})
	}
	top := -1
	for i := range list {
		if top < 0 || list[i].priority > list[top].priority {
			top = i
		}
	}
	if top >= 0 {
		list[top].state = master
	}
	return list
}

// End ends the process of opensm, as the kernel does that runs out of memory. What it has written into the
// ports stays.
func (m *Manager) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended, m.conf = m.ended || m.conf != nil, nil
}

// SwitchOn switches on the subnet manager of a managed switch, with the highest priority there is: it
// becomes the master, knows nothing of the site's partitions, and puts every port into the default
// one.
func (m *Manager) SwitchOn(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.other = GUIDOf(name)
	if m.conf != nil {
		m.logf(0x80, "Entering STANDBY state")
	}
	m.takeOver()
}

// Cut takes the HCA out of the controller, or puts it back: no program reaches the fabric without it.
func (m *Manager) Cut(cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = cut
}

// takeOver is what the subnet manager of a switch writes into the ports.
func (m *Manager) takeOver() {
	for guid := range m.tables {
		m.tables[guid] = []uint16{0xffff}
	}
}

// Read returns a file.
func (m *Manager) Read(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// Write replaces a file.
func (m *Manager) Write(_ context.Context, name string, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = string(content)
	return nil
}

// Log returns what opensm logged from an offset on, and the offset of its end; -1
// is the end.
func (m *Manager) Log(_ context.Context, from int64) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := m.log.String()
	end := int64(len(text))
	if from < 0 || from > end {
		return nil, end, nil
	}
	return []byte(text[from:]), end, nil
}

// Reload makes opensm read its files again, or starts it anew.
func (m *Manager) Reload(_ context.Context, restart bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if restart || m.conf == nil {
		m.conf, m.ended = parseOptions(m.files["/etc/opensm/opensm.conf"]), false
		m.logf(0x80, "Entering DISCOVERING state")
		m.logf(0x80, "Entering MASTER state")
	}
	m.sweep()
	return nil
}

// parseOptions reads opensm.conf: a word and its value on a line.
func parseOptions(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[name] = strings.TrimSpace(value)
		}
	}
	return all
}

// logf writes a line of the log.
func (m *Manager) logf(level int, format string, args ...any) {
	fmt.Fprintf(&m.log, "%s [4D1DF6C0] 0x%02x -> %s\n", m.clock.Now().UTC().Format("Jan 02 15:04:05 000000"), level, fmt.Sprintf(format, args...))
}

// sweep gives every port with a link its LID and its P_Keys.
func (m *Manager) sweep() {
	if m.conf == nil {
		return
	}
	ports := m.ports()
	next := len(m.lids)
	number := func(g addr.GUID) {
		if m.lids[g] == 0 {
			next++
			m.lids[g] = next
		}
	}
	for _, sm := range m.managers() {
		number(sm.port)
	}
	for _, s := range m.wiring.Switches() {
		number(GUIDOf(s.Name))
	}
	for _, p := range ports {
		number(p.GUID)
	}
	m.tables = m.partitions(ports)
	if m.other != 0 {
		m.takeOver()
		return
	}
	m.logf(0x02, "osm_ucast_mgr_process: %s tables configured on all switches", m.engine())
	m.logf(0x02, "SUBNET UP")
}

// ports are the ports with a link, and the controller's own.
func (m *Manager) ports() []Port {
	list := slices.DeleteFunc(m.wiring.Ports(), func(p Port) bool { return p.Switch == "" })
	slices.SortStableFunc(list, func(a, b Port) int { return cmp.Compare(a.GUID, b.GUID) })
	return list
}

// engines are those of upstream opensm that route any fabric.
var engines = []string{"minhop", "updn", "dnup", "ftree", "lash", "dor", "nue", "dfsssp", "sssp"}

// engine is the first of the list that there is, else minhop.
func (m *Manager) engine() string {
	for name := range strings.SplitSeq(m.conf["routing_engine"], ",") {
		if slices.Contains(engines, name) {
			return name
		}
		if name != "" {
			m.logf(0x01, "setup_routing_engine: cannot find or setup routing engine '%s'", name)
		}
	}
	return "minhop"
}

// Table is what the subnet manager has written into a port: its LID, 0 for none,
// and its P_Keys. A port that it has not found yet has what it left the factory
// with.
func (m *Manager) Table(guid addr.GUID) (lid int, keys []uint16) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if keys, ok := m.tables[guid]; ok {
		return m.lids[guid], slices.Clone(keys)
	}
	return 0, []uint16{0xffff}
}

// Run runs a program as a shell of the controller would.
func (m *Manager) Run(_ context.Context, argv ...string) (onnode.Output, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut { // libibumad's words, as those of infiniband-diags 44
		return onnode.Output{Exit: 255, Stderr: fmt.Appendf(nil, "ibwarn: [4711] mad_rpc_open_port: can't open UMAD port ((null):0)\n%s: iberror: failed: Failed to open '(null)' port '0'\n", path.Base(argv[0]))}, nil
	}
	switch path.Base(argv[0]) {
	case "ibnetdiscover":
		return onnode.Output{Stdout: []byte(m.discover())}, nil
	case "sminfo":
		return m.info(argv[1:]), nil
	case "saquery":
		return m.records(argv[1:]), nil
	case "ibqueryerrors":
		return m.count(argv[1:]), nil
	case "smpquery":
		return m.query(argv[1:]), nil
	}
	return onnode.Output{Exit: 127, Stderr: fmt.Appendf(nil, "%s: command not found\n", argv[0])}, nil
}
