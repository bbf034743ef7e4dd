// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Paths below the HTTP root.
const (
	bootPrefix = "/boot/"
	kernelName = "vmlinuz"
	initrdName = "initrd"
)

// Segment is one part of the initrd: the kernel unpacks several archives one
// after another (Documentation/driver-api/early-userspace/buffer-format.rst).
type Segment interface {
	io.ReaderAt
	Size() int64
}

// Ramdisk is what every node boots for an image: a kernel, and the shared
// segments of its initrd. The node's own segment comes last.
type Ramdisk interface {
	// Open returns the kernel and the shared initrd segments of the image that
	// the node is installed with; close gives them back.
	Open(node string) (kernel Segment, initrd []Segment, close func(), err error)
	// Own packs a node's own segment.
	Own(wire.Boot) ([]byte, error)
}

// EventOtherNode is the evidence that boot files of a node, with its token in them,
// were asked for from an address that is not the node's.
const EventOtherNode = "boot-files-of-another"

// BootFiles serves /boot/ATTEMPT/vmlinuz and /boot/ATTEMPT/initrd to the node of
// an open attempt, at its own address only. Words fills in what the node is told
// beside its attempt.
type BootFiles struct {
	Boots    *Boots
	Ramdisk  Ramdisk
	Words    func(node string) (wire.Boot, error)
	Recorder netboot.Recorder // of requests from other addresses; nil: they are not recorded
	// OtherFetch is called for the same, and for addresses that no client has (UnknownClient). It
	// must not block. Nil: it is not called.
	OtherFetch func(OtherFetch)
	MAC        func(netip.Addr) (addr.MAC, bool) // that answers for an address; nil: none is known
	// OtherOwner returns the MAC that answers for a node's address when it is none of
	// the node's; Conflict is told then, and nothing is served. Nil: not checked.
	OtherOwner func(netboot.Client) (addr.MAC, bool)
	Conflict   func(hub.Grant, hub.ConflictError)
}

// ServeHTTP implements http.Handler. Ranges are served, so that firmware may
// resume.
func (f *BootFiles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, file, open := f.attempt(r)
	if !open {
		http.Error(w, "this boot attempt is not open: the node was installed, or the attempt has expired", http.StatusForbidden)
		return
	}
	node := at.Node
	from, own := f.ofNode(r, at)
	if !own {
		http.Error(w, "these boot files are another node's", http.StatusForbidden)
		return
	}
	kernel, shared, closeAll, err := f.Ramdisk.Open(node)
	if err != nil {
		http.Error(w, "the install ramdisk cannot be read: "+err.Error(), http.StatusInternalServerError)
		return
	}
	defer closeAll()
	switch file {
	case kernelName:
		serveSegments(w, r, f.Boots.counter(node), kernel)
	case initrdName:
		segment, err := f.own(node, at.ID)
		if err != nil {
			http.Error(w, "the node's segment cannot be made: "+err.Error(), http.StatusInternalServerError)
			return
		}
		f.Boots.noteFetch(at.ID, from, time.Now())
		serveSegments(w, r, f.Boots.counter(node), append(append([]Segment{}, shared...), segment)...)
	default:
		http.NotFound(w, r)
	}
}

// attempt finds the open attempt that a request names in its path, and the file.
func (f *BootFiles) attempt(r *http.Request) (at netboot.Attempt, file string, open bool) {
	id, file, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, bootPrefix), "/")
	at, open = f.Boots.Attempt(id[:max(0, strings.LastIndexByte(id, '-'))])
	return at, file, ok && open && at.ID == id
}

// ofNode reports whether a request came from the node of an attempt: from its
// address, and from none of another machine that took the address.
func (f *BootFiles) ofNode(r *http.Request, at netboot.Attempt) (netip.Addr, bool) {
	from := boot.AddressOf(r.RemoteAddr)
	c, known := f.Boots.ByAddress(from)
	if !known || c.Node != at.Node || c.Kind == netboot.BMC {
		if f.Recorder != nil {
			detail := fmt.Sprintf("%s %s: %s is not the address of %s", r.Method, r.URL.Path, from, at.Node)
			if last, ok := f.Boots.lastFetch(at.ID); ok {
				detail += fmt.Sprintf("; %s fetched them at %s", last.from, last.at.UTC().Format(time.TimeOnly))
			}
			f.Recorder.Record(netboot.Evidence{Time: time.Now(), Node: c.Node, Address: from, Proto: boot.HTTP, What: EventOtherNode, Refused: true, Detail: detail})
		}
		f.otherFetch(r, at)
		return from, false
	}
	if f.OtherOwner == nil {
		return from, true
	}
	if mac, other := f.OtherOwner(c); other {
		f.Conflict(hub.Grant{Node: at.Node, Attempt: at.ID}, hub.OtherMAC(c, mac))
		return from, false
	}
	return from, true
}

// own packs the segment of one attempt.
func (f *BootFiles) own(node, attempt string) (Segment, error) {
	words, err := f.Words(node)
	if err != nil {
		return nil, err
	}
	words.Version, words.Node, words.Attempt, words.Token = wire.Version, node, attempt, f.Boots.Token(attempt)
	b, err := f.Ramdisk.Own(words)
	if err != nil {
		return nil, err
	}
	return bytes.NewReader(b), nil
}

// serveSegments answers with segments joined, each padded to four bytes as cpio wants.
// sent counts what is read of them.
func serveSegments(w http.ResponseWriter, r *http.Request, sent *atomic.Int64, parts ...Segment) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "no-store") // it holds a token
	j := newJoin(parts)
	j.sent = sent
	http.ServeContent(w, r, "", time.Time{}, j)
}

// join reads segments as one file.
type join struct {
	parts []Segment
	start []int64 // of each part; one more for the end
	at    int64
	sent  *atomic.Int64 // bytes read; nil: not counted
}

func newJoin(parts []Segment) *join {
	j := &join{parts: parts, start: []int64{0}}
	for i, p := range parts {
		end := j.start[i] + p.Size()
		if i < len(parts)-1 {
			end = (end + 3) &^ 3
		}
		j.start = append(j.start, end)
	}
	return j
}

// Read implements io.Reader.
func (j *join) Read(b []byte) (int, error) {
	for i, p := range j.parts {
		if j.at >= j.start[i+1] {
			continue
		}
		off := j.at - j.start[i]
		n := 0
		if left := p.Size() - off; left > 0 {
			var err error
			n, err = p.ReadAt(b[:min(int64(len(b)), left)], off)
			if n == 0 && err != nil {
				return 0, err
			}
		} else { // padding
			n = int(min(int64(len(b)), j.start[i+1]-j.at))
			clear(b[:n])
		}
		j.at += int64(n)
		if j.sent != nil {
			j.sent.Add(int64(n))
		}
		return n, nil
	}
	return 0, io.EOF
}

// Seek implements io.Seeker.
func (j *join) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += j.at
	case io.SeekEnd:
		off += j.start[len(j.parts)]
	}
	if off < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	j.at = off
	return off, nil
}
