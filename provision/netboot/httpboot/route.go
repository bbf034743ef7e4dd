// SPDX-License-Identifier: Apache-2.0

package httpboot

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/grub"
	"github.com/ironrail/ironrail/provision/netboot/ipxe"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// What words of the evidence.
const (
	eventScript      = "script"
	EventLoader      = "loader"
	EventKernelStart = "kernel.start"
	EventKernelEnd   = "kernel.end"
	EventInitrdStart = "initrd.start"
	EventInitrdEnd   = "initrd.end"
	eventRefused     = "refused"
	scriptName       = "/script.ipxe"
	longestPathShown = 200
)

// request is one request with who sent it.
type request struct {
	*http.Request
	w     *response
	peer  netip.Addr
	from  boot.Client
	known bool
}

// route is one kind of path; the first that takes a request ends the search.
type route func(*Server, *request) (taken bool)

var routes = []route{(*Server).script, (*Server).grubConfig, (*Server).unknownClient, (*Server).loader, (*Server).mount}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, w: &response{ResponseWriter: w}, peer: boot.AddressOf(r.RemoteAddr)}
	q.from, q.known = s.cfg.Source.ByAddress(q.peer)
	if !q.known {
		w.Header().Set("Connection", "close") // unknown clients share few
	}
	p, ok := cleanPath(r.URL.Path)
	if !ok {
		s.refuse(q, http.StatusBadRequest, "the path is not one of ours")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		s.refuse(q, http.StatusMethodNotAllowed, "only GET and HEAD are answered")
		return
	}
	if p != r.URL.Path {
		q.Request = r.Clone(r.Context())
		q.URL.Path, q.URL.RawPath = p, ""
	}
	for _, take := range routes {
		if take(s, q) {
			return
		}
	}
	http.Error(q.w, "ironrail: there is nothing at "+p, http.StatusNotFound)
}

// script answers /boot/MAC/script.ipxe. Refusals are scripts too: so the reason
// reaches the console of the node.
func (s *Server) script(q *request) bool {
	dir, ok := strings.CutSuffix(q.URL.Path, scriptName)
	name, boots := strings.CutPrefix(dir, "/boot/")
	mac, err := addr.ParseMAC(name)
	if !ok || !boots || err != nil {
		return false
	}
	text, detail, refused := s.scriptFor(q, &mac, ipxeScripts)
	s.writeScript(q, boot.Evidence{MAC: mac, Detail: detail, Refused: refused}, text)
	return true
}

// grubConfig answers the paths at which GRUB looks for its configuration. Which node it is
// for is told by the address alone; refusals are configurations, as with iPXE.
func (s *Server) grubConfig(q *request) bool {
	if !slices.Contains(grub.Names(), strings.TrimPrefix(q.URL.Path, "/")) {
		return false
	}
	text, detail, refused := s.scriptFor(q, nil, grubConfigs)
	s.writeScript(q, boot.Evidence{Detail: "GRUB: " + detail, Refused: refused}, text)
	return true
}

// writeScript answers with a boot script, and records it.
func (s *Server) writeScript(q *request, e boot.Evidence, text string) {
	q.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	q.w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(q.w, q.Request, "", time.Time{}, strings.NewReader(text))
	e.Proto, e.What, e.Bytes = boot.IPXE, eventScript, q.w.n
	s.recordEvent(q, e)
}

// scripts is the language of a boot program.
type scripts struct {
	boot   func(a boot.Attempt, root netip.AddrPort) (string, error)
	disk   func(node string) string
	refuse func(reason string) string
}

var (
	ipxeScripts = scripts{
		func(a boot.Attempt, root netip.AddrPort) (string, error) {
			return ipxe.BootScript(a, "http://"+root.String())
		},
		ipxe.DiskScript, ipxe.RefusalScript,
	}
	grubConfigs = scripts{grub.BootConfig, grub.DiskConfig, grub.RefusalConfig}
)

// scriptFor decides what a node boots. mac is the one that it was asked for; nil: the
// address alone says who asks.
func (s *Server) scriptFor(q *request, mac *addr.MAC, in scripts) (text, detail string, refused bool) {
	refuse := func(format string, args ...any) (string, string, bool) {
		why := fmt.Sprintf(format, args...)
		return in.refuse(why), why, true
	}
	switch {
	case !q.known:
		return refuse("no node of the inventory has address %s", q.peer)
	case q.from.Kind == boot.BMC:
		return refuse("%s is the BMC of %s and boots nothing", q.peer, q.from.Node)
	case mac != nil && !slices.Contains(q.from.MACs, *mac):
		return refuse("MAC %s is not one of node %s, which has address %s", mac, q.from.Node, q.peer)
	}
	a, ok := s.cfg.Source.Attempt(q.from.Node)
	if !ok {
		return in.disk(q.from.Node), "no open boot attempt: sent to its disk", false
	}
	if !a.Expires.IsZero() && !time.Now().Before(a.Expires) {
		return in.disk(q.from.Node), fmt.Sprintf("boot attempt %s has expired: sent to its disk", a.ID), false
	}
	text, err := in.boot(a, s.cfg.Root)
	if err != nil {
		return refuse("%v", err)
	}
	return text, "boot attempt " + a.ID, false
}

// unknownClient ends everything but scripts for clients that are not known.
func (s *Server) unknownClient(q *request) bool {
	if q.known {
		return false
	}
	s.refuse(q, http.StatusForbidden, fmt.Sprintf("no node of the inventory has address %s", q.peer))
	if m := s.mountOf(q.URL.Path); m != nil && m.UnknownClient != nil {
		m.UnknownClient(q.Request)
	}
	return true
}

// loader answers /loader/NAME from memory.
func (s *Server) loader(q *request) bool {
	name, ok := strings.CutPrefix(q.URL.Path, "/loader/")
	if !ok {
		return false
	}
	b, ok := s.cfg.Loaders[name]
	if !ok {
		s.refuse(q, http.StatusNotFound, "no such first-stage loader; there are "+strings.Join(s.cfg.Loaders.Names(), ", "))
		return true
	}
	if path.Base(name) == loader.MOKX64 && !q.from.MOK {
		s.refuse(q, http.StatusForbidden, "no certificate is enrolled on this node by its console")
		return true
	}
	kind := "application/octet-stream"
	if strings.HasSuffix(name, ".efi") {
		kind = "application/efi" // UEFI 2.10 section 24.7.6: the type decides how it is started
	}
	q.w.Header().Set("Content-Type", kind)
	http.ServeContent(q.w, q.Request, "", time.Time{}, bytes.NewReader(b))
	s.recordEvent(q, boot.Evidence{Proto: boot.HTTP, What: EventLoader, Detail: q.Method + " " + name, Bytes: q.w.n})
	return true
}

// mountOf finds the longest prefix that matches; nil: none does.
func (s *Server) mountOf(path string) (best *Mount) {
	for i, m := range s.cfg.Mounts {
		if strings.HasPrefix(path, m.Prefix) && (best == nil || len(m.Prefix) > len(best.Prefix)) {
			best = &s.cfg.Mounts[i]
		}
	}
	return best
}

// mount gives the request to the longest prefix that matches.
func (s *Server) mount(q *request) bool {
	best := s.mountOf(q.URL.Path)
	if best == nil {
		return false
	}
	start, end := s.part(q)
	if start != "" {
		s.recordEvent(q, boot.Evidence{Proto: boot.HTTP, What: start, Detail: q.Method + " " + q.URL.Path})
	}
	best.Handler.ServeHTTP(q.w, q.Request)
	if end != "" {
		e := boot.Evidence{Proto: boot.HTTP, What: end, Detail: fmt.Sprintf("%s %s: status %d", q.Method, q.URL.Path, q.w.status), Bytes: q.w.n}
		if q.Context().Err() != nil {
			e.Detail += ", cut off by the node"
		}
		e.Refused = q.w.status >= http.StatusBadRequest
		s.recordEvent(q, e)
	}
	return true
}

// part says whether the path is the kernel or an initrd of the node's attempt.
func (s *Server) part(q *request) (start, end string) {
	a, ok := s.cfg.Source.Attempt(q.from.Node)
	switch {
	case !ok:
	case q.URL.Path == a.Kernel:
		return EventKernelStart, EventKernelEnd
	case slices.Contains(a.Initrds, q.URL.Path):
		return EventInitrdStart, EventInitrdEnd
	}
	return "", ""
}

func (s *Server) refuse(q *request, status int, why string) {
	http.Error(q.w, "ironrail: "+why, status)
	s.recordEvent(q, boot.Evidence{Proto: boot.HTTP, What: eventRefused, Refused: true,
		Detail: fmt.Sprintf("%s %.*q: %s", q.Method, longestPathShown, q.URL.Path, why)})
}

// recordEvent fills in who and when.
func (s *Server) recordEvent(q *request, e boot.Evidence) {
	e.Time, e.Node, e.Address = time.Now(), q.from.Node, q.peer
	if e.MAC.IsZero() && len(q.from.MACs) == 1 {
		e.MAC = q.from.MACs[0]
	}
	s.cfg.Recorder.Record(e)
}

// cleanPath collapses double slashes (shim asks for //grubx64.efi) and single
// dots, and refuses to go up. It keeps a slash at the end.
func cleanPath(p string) (string, bool) {
	var b strings.Builder
	parts := strings.Split(p, "/")
	for _, seg := range parts {
		switch seg {
		case "", ".":
			continue
		case "..":
			return "", false
		}
		if strings.ContainsAny(seg, "\\\x00") {
			return "", false
		}
		b.WriteString("/" + seg)
	}
	if last := parts[len(parts)-1]; last == "" || last == "." {
		b.WriteByte('/')
	}
	return b.String(), true
}
