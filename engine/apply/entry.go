package apply

import "github.com/ironrail/ironrail/engine/state"

// entry is what one write says.
type entry struct {
	records []state.Record
	puts    []state.Put
	nodes   []nodeChange
	err     error // an object that could not be encoded
}

// ofStep is an entry with room for what is written of most steps.
func ofStep() entry {
	return entry{records: make([]state.Record, 0, 1), puts: make([]state.Put, 0, 2), nodes: make([]nodeChange, 0, 1)}
}

// nodeChange is a change of a node; nil only touches it.
type nodeChange struct {
	name   string
	change func(*state.Node)
}

// record adds a line to the journal.
func (n *entry) record(r state.Record) { n.records = append(n.records, r) }

// recordAndPut adds a line to the journal whose data is v, and stores v at k.
func (n *entry) recordAndPut(r state.Record, k state.Key, v any) {
	n.put(k, v)
	r.Data = n.puts[len(n.puts)-1].Value
	n.record(r)
}

// put stores v at k.
func (n *entry) put(k state.Key, v any) {
	p, err := state.PutOf(k, v)
	if n.err == nil {
		n.err = err
	}
	n.puts = append(n.puts, p)
}

// node changes a node; several changes of one node follow each other.
func (n *entry) node(name string, change func(*state.Node)) {
	if name != "" {
		n.nodes = append(n.nodes, nodeChange{name, change})
	}
}
