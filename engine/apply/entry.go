package apply

import "github.com/ironrail/ironrail/engine/state"

// entry is what one write says.
type entry struct {
	records []state.Record
	puts    []state.Put
	changes []nodeChange
	err     error // an object that could not be encoded
}

// newStepEntry is an entry with room for what is written of most steps.
func newStepEntry() entry {
	return entry{records: make([]state.Record, 0, 1), puts: make([]state.Put, 0, 2), changes: make([]nodeChange, 0, 1)}
}

// nodeChange is a change of a node; nil only touches it.
type nodeChange struct {
	name   string
	change func(*state.Node)
}

// addRecord adds a line to the journal.
func (n *entry) addRecord(r state.Record) { n.records = append(n.records, r) }

// addRecordOf adds a line to the journal whose data is v, and stores v at k.
func (n *entry) addRecordOf(r state.Record, k state.Key, v any) {
	n.putObject(k, v)
	r.Data = n.puts[len(n.puts)-1].Value
	n.addRecord(r)
}

// putObject stores v at k.
func (n *entry) putObject(k state.Key, v any) {
	p, err := state.PutOf(k, v)
	if n.err == nil {
		n.err = err
	}
	n.puts = append(n.puts, p)
}

// changeNode changes a node; several changes of one node follow each other.
func (n *entry) changeNode(name string, change func(*state.Node)) {
	if name != "" {
		n.changes = append(n.changes, nodeChange{name, change})
	}
}
