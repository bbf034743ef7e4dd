// SPDX-License-Identifier: Apache-2.0

package iblinkinfo

import "github.com/ironrail/ironrail/tool"

// place is a port as its peer names it.
type place struct{ lid, port int }

// compare looks at both ends of each cable that has both in the output. Ports of
// LID 0, before a subnet manager came, cannot be distinguished.
func (r *reader) compare() {
	at := map[place]int{}
	for i := range r.info.Ports {
		p := &r.info.Ports[i]
		k := place{p.LID, p.Port}
		if p.LID == 0 {
			continue
		}
		if j, again := at[k]; again {
			r.few.Add(&r.problems, "ports that are there twice", tool.Inconsistent, p.line, "Port %d of LID %d is here (%q) and on line %d (%q).", p.Port, p.LID, p.Node.Name, r.info.Ports[j].line, r.info.Ports[j].Node.Name)
			continue
		}
		at[k] = i
	}
	for i := range r.info.Ports {
		p := &r.info.Ports[i]
		if p.Peer == nil || p.LID == 0 || p.Peer.LID == 0 {
			continue
		}
		if j, known := at[place{p.Peer.LID, p.Peer.Port}]; known {
			r.ends(p, &r.info.Ports[j])
		}
	}
}

// ends compares a port with the port at the other end.
func (r *reader) ends(p, q *Port) {
	if q.Peer == nil || q.Peer.LID != p.LID || q.Peer.Port != p.Port {
		r.few.Add(&r.problems, "ports that do not name each other", tool.Inconsistent, p.line, "Port %d of %q names port %d of %q as its peer, which names another or none on line %d.", p.Port, p.Node.Name, q.Port, q.Node.Name, q.line)
		return
	}
	if p.line < q.line && (p.Width != q.Width || p.Speed != q.Speed) {
		r.few.Add(&r.problems, "cables whose ends differ", tool.Inconsistent, q.line, "The ends of the cable between port %d of %q and port %d of %q say %s %s and %s %s.", p.Port, p.Node.Name, q.Port, q.Node.Name, p.Width, p.Speed, q.Width, q.Speed)
	}
}
